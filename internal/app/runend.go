package app

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
)

// End removes a run with everything that it made, and names the watched files that it
// changed (B8). A run that can't be removed is left to the next one.
func (run *Run) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTime)
	defer cancel()
	defer run.Close()
	err := run.env.removeRun(ctx, run.Running, false)
	if err == nil {
		run.note.forget()
	} else {
		run.note.leave()
		err = Fail(CodeEngine, "the run isn't removed: %w", err).Hint("the next `workshop run` removes it, or `workshop -p %s down`", run.Name)
	}
	select {
	case <-run.tidied:
	case <-ctx.Done():
	}
	return err
}

// failed removes a run that could not start, and returns why it couldn't.
func (run *Run) failed(ctx context.Context, why error) error {
	if run.note == nil { // nothing was made
		<-run.tidied
		run.Close()
		return why
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollBackTime)
	defer cancel()
	for _, service := range notReady(why) {
		run.env.lastWords(within, run.Running, run.Name, service)
	}
	if err := run.End(ctx); err != nil {
		run.env.warn("%v", err)
	}
	if f, ok := errors.AsType[*Failure](why); ok {
		f.Remaining = nil // nothing is
	}
	return why
}

// removeRun removes what is there of a run, on the engine and of what was noted. killed:
// the engine may still be finishing its last call.
func (env *Env) removeRun(ctx context.Context, r *Running, killed bool) error {
	var were engine.Observed
	looked := false
	err := (&Change{env: env, unfinished: killed}).converge(ctx, r, 0, func() (*engine.Plan, error) {
		seen, err := r.Observe(ctx, r.Name)
		if err != nil {
			return nil, EngineError(err)
		}
		if !looked {
			were, looked = seen, true
		}
		plan, err := engine.PlanDown(seen, r.Dir)
		return plan, EngineError(err)
	})
	if err == nil {
		err = EngineError(r.Tidy(ctx, r.Name, r.Dir))
	}
	if err != nil {
		return err
	}
	// Now that no worker can write any more.
	changed := env.CompareWatched(ctx, r.Name, were)
	record, _ := env.Record(r.Name) // CompareWatched has said what is wrong with it
	err = errors.Join(env.forgetSecrets(r.ProjectRef, record, were), env.forgetPorts(ctx, r.ProjectRef))
	if record == nil || !changed || !Exists(record.Dir) {
		return errors.Join(err, facts.ForgetRecord(env.recordsDir(), r.Name))
	}
	name := runsName(record.Dir)
	unlock := env.briefly(ctx, name)
	if unlock == nil {
		return errors.Join(err, errors.New("another workshop command has the record of what runs wrote here"))
	}
	defer unlock()
	if e := record.Fold(env.recordsDir(), name); e != nil {
		return errors.Join(err, e)
	}
	env.hint("`workshop -p %s down --accept-watched` takes these files as they are; until then no workshop obeys what was written there", name)
	return err
}

// runsName is the name under which is kept in mind what runs of a directory wrote.
func runsName(dir string) string {
	const ending = "-runs"
	name := ProjectSafe(filepath.Base(dir), "workshop")
	if most := MaxProjectName - len(facts.RuntimeID(ending, dir)); len(name) > most {
		name = strings.TrimRight(name[:most], "-_")
	}
	return facts.RuntimeID(name+ending, dir)
}

// removeKilledRuns removes what is left of runs that were killed.
func (env *Env) removeKilledRuns(ctx context.Context) {
	for _, note := range env.killedRuns() {
		if err := env.removeKilled(ctx, note); err != nil {
			env.detail("%s, a run that was killed, is not removed: %v", note.project, err)
			note.leave()
			continue
		}
		env.detail("removed %s, a run that was killed", note.project)
		note.forget()
	}
}

func (env *Env) removeKilled(ctx context.Context, note *heldNote) error {
	own := *env
	own.Settings.Engine, own.Settings.Project, own.Settings.File = note.Engine, "", ""
	r, err := own.Connect(ctx, ProjectRef{Name: note.project, Dir: note.Dir}, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := r.Info(ctx)
	if err != nil {
		return err
	}
	if info.Endpoint != note.Endpoint {
		return errors.New("it is on another engine: " + note.Endpoint)
	}
	return own.removeRun(ctx, r, true)
}

// ownFiles are the files of the workshop that a run without a file ignores, where its
// worker may write: what is written there is compared, and obeyed by nobody (B8).
func (env *Env) ownFiles(ctx context.Context, r *facts.Record) (files []string) {
	if len(r.Roots) == 0 {
		return nil
	}
	quiet := *env
	quiet.Settings.File, quiet.Settings.EnvFiles = "", nil
	file, err := quiet.lookUpFile()
	if err != nil {
		return nil
	}
	s, err := quiet.Read(ctx, file)
	if err != nil {
		return nil
	}
	for p := range s.definition().Known {
		files = append(files, p)
	}
	slices.Sort(files)
	return files
}
