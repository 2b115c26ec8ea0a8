package app

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	Engine  string `json:"engine,omitempty"` // of one that runs, or may run
	// Endpoint is how that is reached, where its own default is another.
	Endpoint string `json:"endpoint,omitempty"`
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
	all, silent, err := env.listEngines(ctx, o, records)
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
	for _, w := range env.down(ctx, out, records, silent, o) {
		if o.All || w.State == StateUnknown && w.Engine != "" { // no workshop runs unseen
			out = append(out, w)
		}
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
	place  facts.Place
}

// silent are engines that didn't answer, or weren't asked.
type silent struct {
	places []facts.Place
	some   bool // others than those
}

func (s silent) any() bool { return s.some || len(s.places) > 0 }

// has reports whether a project that was recorded to be up may be on one of them.
func (s silent) has(r *facts.Record) bool {
	if r.Place == nil || r.Place.Endpoint == "" {
		return s.any()
	}
	return s.some || slices.ContainsFunc(s.places, func(p facts.Place) bool { return sameEndpoint(p.Endpoint, r.Place.Endpoint) })
}

// listEngines asks all engines at the same time.
func (env *Env) listEngines(ctx context.Context, o ListOptions, records []*facts.Record) (all []onEngine, s silent, err error) {
	places := env.enginesHere(records)
	if o.Engine != "" {
		places = slices.DeleteFunc(places, func(p facts.Place) bool { return p.Engine != o.Engine })
		if s.some = true; len(places) == 0 {
			places = []facts.Place{{Engine: o.Engine}}
		}
	}
	lists, problems := make([][]engine.Listed, len(places)), make([]error, len(places))
	var wg sync.WaitGroup
	for i, p := range places {
		wg.Go(func() { lists[i], problems[i] = env.listEngine(ctx, p) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, s, context.Cause(ctx)
	}
	seen := map[string]bool{} // one engine may have several endpoints
	for i, list := range lists {
		for _, l := range list {
			if len(l.Containers) > 0 && seen[l.Containers[0].ID] {
				continue
			}
			for _, c := range l.Containers {
				seen[c.ID] = c.ID != ""
			}
			all = append(all, onEngine{l, places[i].Engine, places[i]})
		}
	}
	for i, p := range places {
		missing, unreachable := errors.AsType[*docker.UnreachableError](problems[i])
		switch {
		case problems[i] == nil:
		case o.Engine != "" && len(all) == 0:
			return nil, s, EngineError(problems[i])
		case o.Engine == "" && unreachable && missing.Absent && !recordedAt(records, p): // there is no Docker here
		default:
			s.places = append(s.places, p)
			env.warn("engine %s: %s", p.Engine, firstLine(problems[i]))
		}
	}
	return all, s, nil
}

// recordedAt reports whether a project is recorded to be up there.
func recordedAt(records []*facts.Record, p facts.Place) bool {
	return slices.ContainsFunc(records, func(r *facts.Record) bool {
		return !r.Down && r.Place != nil && r.Place.Endpoint != "" && sameEndpoint(r.Place.Endpoint, p.Endpoint)
	})
}

// enginesHere are the engines that may have something of this user: the default ones, and
// those on which a project is recorded to be up.
func (env *Env) enginesHere(records []*facts.Record) []facts.Place {
	usual := facts.Place{Engine: promise.Docker}
	usual.Endpoint, usual.Context, _ = docker.Endpoint(docker.Options{Lookup: env.Lookup}) // its first use says what is wrong
	places := []facts.Place{usual}
	podman, _, err := docker.Endpoint(docker.Options{Flavour: engine.FlavourPodman, Lookup: env.Lookup})
	if socket, ok := strings.CutPrefix(podman, "unix://"); err == nil && ok && Exists(socket) && !sameEndpoint(podman, usual.Endpoint) {
		places = append(places, facts.Place{Engine: promise.Podman, Endpoint: podman})
	}
	for _, name := range ownState {
		if dir := env.StateDir(); dir != "" && Exists(filepath.Join(dir, name)) {
			places = append(places, facts.Place{Engine: name})
		}
	}
	for _, r := range records {
		if r.Down || r.Place == nil || r.Place.Endpoint == "" {
			continue
		}
		if !slices.ContainsFunc(places, func(p facts.Place) bool { return sameEndpoint(p.Endpoint, r.Place.Endpoint) }) {
			places = append(places, *r.Place)
		}
	}
	return places
}

// engineAt connects to an engine of [Env.enginesHere].
func (env *Env) engineAt(ctx context.Context, p facts.Place) (engine.Engine, error) {
	o := env.engineOptions()
	o.Endpoint, o.Context = p.Endpoint, p.Context
	return env.Engine(ctx, p.Engine, o)
}

func (env *Env) listEngine(ctx context.Context, p facts.Place) ([]engine.Listed, error) {
	e, err := env.engineAt(ctx, p)
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
	if slices.Contains(ownState, engine) || r != nil || os.Getuid() <= 0 {
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
