package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/ports"
)

// place is a project on an engine.
type place struct{ engine, project, dir string }

// places are projects by whether nothing uses them.
type places map[place]bool

// projects adds what is on an engine of projects that nobody uses: of those whose
// directory is gone, and of those without a worker, which an interrupted command left. It
// returns all.
func (p *pruner) projects() places {
	all := places{}
	for _, l := range p.listed {
		at := place{l.engine, l.Project, l.Directory}
		why := leftWhy(l.Directory, l.Containers)
		all[at] = why != ""
		switch {
		case !p.owns(l.engine, l.Directory, recordOf(p.records, l.Project, l.Directory)) || p.isRun(l.Project):
			all[at] = false
		case why != "":
			p.addProject(at, why, max(l.Memory, 0))
		case !Exists(l.Directory):
			p.say("project %s runs, and its directory %s is gone: it stays; `workshop -p %s down` removes it", Printable(l.Project), Printable(l.Directory), Printable(l.Project))
		}
	}
	return all
}

// isRun reports whether a project is a run that somebody waits for, or that was killed,
// which has a note of its own.
func (p *pruner) isRun(project string) bool {
	dir := p.runsDir()
	return dir != "" && Exists(filepath.Join(dir, project))
}

// leftWhy says why nothing uses a project; empty: something does.
func leftWhy(dir string, containers []engine.Container) string {
	worker, running := false, false
	for _, c := range containers {
		worker = worker || c.Role == compose.RoleWorker.String()
		running = running || c.State == "running"
	}
	switch {
	case !worker:
		return "an interrupted command left it, without a worker"
	case !running && dir != "" && !Exists(dir):
		return "its directory is gone"
	}
	return ""
}

func (p *pruner) addProject(at place, why string, bytes int64) {
	own := *p.Env
	own.Settings.Project, own.Settings.File, own.Settings.Engine = at.project, "", at.engine
	p.add(Unused{Kind: "project", Name: at.project + " of " + cmp.Or(at.dir, "an unknown directory"), Engine: at.engine, Why: why, Bytes: bytes, remove: func(ctx context.Context) error {
		_, err := own.downOf(ctx, ProjectRef{Name: at.project, Dir: at.dir}, DownOptions{unless: func(seen engine.Observed) error {
			if leftWhy(at.dir, seen.Containers) == "" || p.isRun(at.project) {
				return errInUse
			}
			return nil
		}})
		return err
	}})
}

// gone adds what this machine keeps for projects whose directory is gone, and which are
// on no engine, or go.
func (p *pruner) gone(projects places) {
	there := func(project, dir string) bool {
		return Exists(dir) || slices.ContainsFunc(p.listed, func(l onEngine) bool {
			return l.Project == project && (l.Directory == dir || l.Directory == "") && !projects[place{l.engine, l.Project, l.Directory}]
		})
	}
	for _, r := range p.records {
		if there(r.Project, r.Dir) || p.isRun(r.Project) {
			continue
		}
		why := "its directory is gone"
		if left := rootsLeft(r); left != "" {
			if !p.all {
				p.say("the record of %s stays, though its directory %s is gone: workers could write to %s, and what they changed there may not have been looked at (B8); `workshop prune --all` removes it", Printable(r.Project), Printable(r.Dir), Printable(left))
				continue
			}
			why += "; workers could write to " + left + " (B8)"
		}
		p.add(Unused{Kind: "record", Name: r.Project + " of " + r.Dir, Why: why, remove: func(ctx context.Context) error {
			return p.removeRecord(ctx, r)
		}})
	}
	leases, err := p.leases().Leases()
	if err != nil {
		p.warn("%v", err)
	}
	for _, l := range leases {
		if there(l.Project, l.Dir) {
			continue
		}
		p.add(Unused{Kind: "port", Name: fmt.Sprintf("%d of %s in %s", l.Port, l.Worker, l.Dir), Why: "its directory is gone", remove: func(ctx context.Context) error {
			return p.leases().Change(ctx, func(all []ports.Lease) ([]ports.Lease, error) {
				if Exists(l.Dir) {
					return nil, errInUse
				}
				return slices.DeleteFunc(all, func(x ports.Lease) bool { return x.Key == l.Key }), nil
			})
		}})
	}
}

// rootsLeft is the first directory outside of the project's where workers could write,
// and which is still there; empty: there is none.
func rootsLeft(r *facts.Record) string {
	for _, root := range r.Roots {
		if !subpath.Within(filepath.ToSlash(root), filepath.ToSlash(r.Dir)) && Exists(root) {
			return root
		}
	}
	return ""
}

// removeRecord removes a record with the secrets of the last run, if they are left.
func (p *pruner) removeRecord(ctx context.Context, r *facts.Record) error {
	ch, err := p.Change(ctx, r.Project)
	if err != nil {
		return err
	}
	defer ch.Unlock()
	now, err := p.Record(r.Project)
	switch {
	case err != nil:
		return err
	case now == nil:
		return nil
	case now.Dir != r.Dir || Exists(r.Dir):
		return errInUse
	}
	t := ProjectRef{Name: r.Project, Dir: r.Dir}
	p.forgetLearning(r.Project)
	return errors.Join(p.forgetSecrets(t, now, engine.Observed{}), facts.ForgetRecord(p.recordsDir(), r.Project))
}

func isAbsent(err error) bool {
	e, ok := errors.AsType[*docker.UnreachableError](err)
	return ok && e.Absent
}
