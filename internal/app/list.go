package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/promise"
)

// listTime bounds how long an engine may take to list its projects.
const listTime = 5 * time.Second

// ListOptions select what is listed. All: also what is down and has kept something.
// Engine is the only one that is asked; empty: all of this machine's.
type ListOptions struct {
	All    bool
	Engine string
}

// Workshop is one workshop of this user on this machine. Its names and its directory
// are text of labels and records.
type Workshop struct {
	Project string `json:"project"`
	Engine  string `json:"engine,omitempty"` // of one that runs
	// Directory is empty if nothing tells it.
	Directory string `json:"directory"`
	// Gone: the directory doesn't exist any more.
	Gone bool `json:"directory_gone,omitempty"`
	// Owner is the uid of the directory, where that isn't the caller.
	Owner *int `json:"directory_owner,omitempty"`
	// State is one of those below.
	State string     `json:"state"`
	Since *time.Time `json:"since,omitempty"`
	// Stale workers have no network until `up`: their room was restarted.
	Stale   []string         `json:"stale,omitempty"`
	Workers []WorkshopWorker `json:"workers"`
	// Memory in bytes that is used; nil: not known.
	Memory *int64 `json:"memory_bytes,omitempty"`
	Reach  Reach  `json:"network"`
	// Kept is what one that is down has left, in words.
	Kept []string `json:"kept,omitempty"`
}

// WorkshopWorker is one worker of it.
type WorkshopWorker struct {
	Name  string `json:"name"`
	State string `json:"state"`
}

// The states of a workshop.
const (
	StateUp     = "up"
	StatePartly = "partly up"
	StateExited = "exited"
	StateDown   = "down"
	// StateUnknown: an `up` noted it, and an engine that may have it doesn't answer.
	StateUnknown = "unknown"
)

// List lists the workshops of this user. An engine that doesn't answer is a warning,
// unless the caller named it.
func (env *Env) List(ctx context.Context, o ListOptions) ([]Workshop, error) {
	records, err := facts.Records(env.recordsDir())
	if err != nil {
		env.warn("not all is known of each project: %v", err)
	}
	all, partial, err := env.listEngines(ctx, o)
	if err != nil {
		return nil, err
	}
	var out []Workshop
	others := 0
	for _, l := range all {
		r := recordOf(records, l.Project, l.Directory)
		w := env.workshopOf(l, r)
		switch {
		case !env.owns(l.engine, l.Directory, r):
			others++
		case o.All || w.State == StateUp || w.State == StatePartly:
			out = append(out, w)
		}
	}
	if others > 0 {
		env.detail("%s of other users on an engine that you share: not listed", Count(others, "workshop"))
	}
	if o.All {
		out = append(out, env.down(ctx, out, records, partial || o.Engine != "", o)...)
	}
	sortfunc.Stable(out, func(x, y Workshop) int {
		return cmp.Or(cmp.Compare(x.Project, y.Project), cmp.Compare(x.Directory, y.Directory), cmp.Compare(x.Engine, y.Engine))
	})
	return out, nil
}

// onEngine is a project with the engine that it is on.
type onEngine struct {
	engine.Listed
	engine string
}

// listEngines asks all engines at the same time.
func (env *Env) listEngines(ctx context.Context, o ListOptions) (all []onEngine, partial bool, err error) {
	names := env.enginesHere()
	if o.Engine != "" {
		names = []string{o.Engine}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	problems := map[string]error{}
	for _, name := range names {
		wg.Go(func() {
			list, problem := env.listEngine(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range list {
				all = append(all, onEngine{l, name})
			}
			problems[name] = problem
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, true, context.Cause(ctx)
	}
	for _, name := range names {
		problem := problems[name]
		missing, unreachable := errors.AsType[*docker.UnreachableError](problem)
		switch {
		case problem == nil:
		case o.Engine != "" && len(all) == 0:
			return nil, true, EngineError(problem)
		case o.Engine == "" && unreachable && missing.Absent: // there is no Docker here
		default:
			partial = true
			env.warn("engine %s: %s", name, firstLine(problem))
		}
	}
	return all, partial, nil
}

// enginesHere are the engines that may have something of this user.
func (env *Env) enginesHere() []string {
	names := []string{promise.Docker}
	for _, name := range ownState {
		if dir := env.StateDir(); dir != "" && Exists(filepath.Join(dir, name)) {
			names = append(names, name)
		}
	}
	return names
}

func (env *Env) listEngine(ctx context.Context, name string) ([]engine.Listed, error) {
	e, err := env.Engine(ctx, name, env.engineOptions())
	if err != nil {
		return nil, err
	}
	defer e.Close()
	within, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	list, err := e.List(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = Fail(CodeEngine, "it doesn't answer within %v", listTime)
	}
	return list, err
}

// engineOptions are those for an engine that no single project is about.
func (env *Env) engineOptions() EngineOptions {
	return EngineOptions{Lookup: env.Lookup, StateDir: env.StateDir(), CacheDir: env.CacheDir(), Version: env.Version}
}

// recordOf is the record of a project of that directory; nil: there is none.
func recordOf(all []*facts.Record, project, dir string) *facts.Record {
	i := slices.IndexFunc(all, func(r *facts.Record) bool { return r.Project == project && (r.Dir == dir || dir == "") })
	if i < 0 {
		return nil
	}
	return all[i]
}

// owns reports whether something on an engine is this user's to manage: the engine is
// theirs alone, they brought the project up, its directory is theirs, or they are root.
func (env *Env) owns(engine, dir string, r *facts.Record) bool {
	if engine != promise.Docker || r != nil || os.Getuid() <= 0 {
		return true
	}
	uid, known := ownerOf(dir)
	return known && uid == os.Getuid()
}

func ownerOf(dir string) (uid int, known bool) {
	info, err := os.Lstat(dir)
	if dir == "" || err != nil {
		return 0, false
	}
	uid, _, known = fileowner.Of(info)
	return uid, known
}

// workshopOf is what is shown of a project.
func (env *Env) workshopOf(l onEngine, r *facts.Record) Workshop {
	w := Workshop{Project: l.Project, Engine: l.engine, Directory: l.Directory, Workers: []WorkshopWorker{}, State: StateExited}
	if uid, known := ownerOf(l.Directory); known && uid != os.Getuid() {
		w.Owner = &uid
	}
	w.Gone = l.Directory != "" && !Exists(l.Directory)
	running := 0
	for _, c := range l.Containers {
		if c.State == "running" {
			running++
		}
		if c.Role == compose.RoleWorker.String() {
			w.Workers = append(w.Workers, WorkshopWorker{c.Service, c.State})
		}
	}
	switch {
	case len(l.Containers) == 0:
		w.State, w.Kept = StateDown, []string{"volumes"}
	case running == len(l.Containers):
		w.State = StateUp
	case running > 0:
		w.State = StatePartly
	}
	if since := l.Since(); !since.IsZero() {
		since = since.UTC()
		w.Since = &since
	}
	if l.Memory >= 0 && running > 0 {
		w.Memory = &l.Memory
	}
	w.Stale = Stale(engine.Observed{Containers: l.Containers}, "")
	w.Reach = reachOf(l, r)
	return w
}
