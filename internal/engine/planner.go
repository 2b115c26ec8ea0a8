package engine

import (
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// planner collects steps; each method adds some and returns their IDs.
type planner struct {
	d    Desired
	o    Observed
	c    *compose.Compiled
	p    *types.Project
	plan *Plan

	byService map[string]Container // the one container of a service
	names     map[string]int       // container name → step that removes it

	removed map[string]int // container ID → step
	images  map[string]int // reference → step
	volumes map[string]int // key → last step that makes or fills it
	fresh   map[string]int // key → step that creates the volume
	network map[string]int // key → step that creates the network, or leaves one of its name
	created map[string]int // service → step
	started map[string]int // service → step
	ready   map[string]int // service → step
	barrier []int          // pulls and builds: nothing is changed before they have succeeded
	init    int            // step that loads the workshop-init image, or 0
	tools   map[string]int // key of a tool volume → step that verifies it
	reload  int            // step that sends the guard its new policy, or 0
}

func newPlanner(d Desired, o Observed) *planner {
	if o.WorkersOnly && d.Compiled != nil {
		d.Compiled = workersOnly(d.Compiled)
	}
	pl := &planner{
		d: d, o: o, c: d.Compiled,
		plan:      &Plan{Project: o.Project, Compiled: d.Compiled, Desired: d, Observed: o},
		byService: map[string]Container{}, names: map[string]int{},
		removed: map[string]int{}, images: map[string]int{}, volumes: map[string]int{}, fresh: map[string]int{},
		network: map[string]int{}, created: map[string]int{}, started: map[string]int{}, ready: map[string]int{}, tools: map[string]int{},
	}
	if d.Compiled != nil {
		pl.p = d.Compiled.Project
		pl.plan.Project = pl.p.Name
	}
	return pl
}

// add appends a step that waits for the given ones; zeros among them mean
// "nothing to wait for".
func (pl *planner) add(s Step, after ...int) int {
	s.ID = len(pl.plan.Steps) + 1
	for _, id := range after {
		if id != 0 && !slices.Contains(s.After, id) {
			s.After = append(s.After, id)
		}
	}
	slices.Sort(s.After)
	pl.plan.Steps = append(pl.plan.Steps, s)
	return s.ID
}

func (pl *planner) remove(c Container, cause string, after ...int) int {
	if id := pl.removed[c.ID]; id != 0 {
		return id
	}
	id := pl.add(Step{Op: OpRemoveContainer, Target: "container/" + c.Name, Service: c.Service, ObjectID: c.ID, Cause: cause}, after...)
	pl.removed[c.ID] = id
	pl.names[c.Name] = id
	return id
}

// dependentsFirst sorts containers by name, those that join the network of another one
// first.
func dependentsFirst(all []Container) []Container {
	out := slices.Clone(all)
	sortfunc.Stable(out, func(a, b Container) int {
		if joinsA, joinsB := a.NetworkOf != "", b.NetworkOf != ""; joinsA != joinsB {
			if joinsA {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out
}

// workersBeforeRooms makes each removal of a room wait for those of the containers in it:
// podman removes none that others join.
func (pl *planner) workersBeforeRooms() {
	for _, c := range pl.o.Containers {
		room, joins := pl.removed[c.NetworkOf], pl.removed[c.ID]
		if c.NetworkOf == "" || room == 0 || joins == 0 {
			continue
		}
		s := &pl.plan.Steps[room-1]
		if !slices.Contains(s.After, joins) {
			s.After = append(s.After, joins)
			slices.Sort(s.After)
		}
	}
}

// CheckDirectory refuses objects of another project directory with a
// [ForeignError]; directory "" accepts any. It also refuses a project of which only
// objects exist that don't belong to a workshop.
func CheckDirectory(o Observed, directory string) error {
	if err := foreign(o, o.Project, directory); err != nil {
		return err
	}
	if len(o.Containers)+len(o.Networks)+len(o.Volumes) > 0 {
		return nil
	}
	return refuseOthers(o, o.Project, directory)
}

// refuseOthers refuses objects that have the project's name and don't belong to a workshop.
func refuseOthers(o Observed, project, directory string) error {
	if len(o.Others) == 0 {
		return nil
	}
	first := o.Others[0]
	return &ForeignError{Project: project, Object: first.Object, Directory: directory, Other: first.Directory, Suggest: suggestProject(project, directory)}
}

// NewForeignError returns the error for objects of another project directory.
func NewForeignError(project, directory, other string) *ForeignError {
	return &ForeignError{Project: project, Directory: directory, Other: other, Workshop: true, Suggest: suggestProject(project, directory)}
}

// refuseForeign refuses observed objects of a project directory other than that of
// the facts; without facts it refuses nothing.
func (pl *planner) refuseForeign() error {
	if pl.c.Facts == nil {
		return nil
	}
	return foreign(pl.o, pl.p.Name, pl.c.Facts.ProjectDir)
}

// foreign refuses objects of another project directory; directory "" accepts any.
func foreign(o Observed, project, directory string) error {
	var others []string
	for _, c := range o.Containers {
		others = append(others, c.Directory)
	}
	for _, v := range o.Volumes {
		others = append(others, ProjectDirectory(v.Labels))
	}
	for _, n := range o.Networks {
		others = append(others, ProjectDirectory(n.Labels))
	}
	for _, other := range others {
		if directory != "" && other != "" && other != directory {
			return NewForeignError(project, directory, other)
		}
	}
	return nil
}

// services returns the services of a role, sorted.
func (pl *planner) services(role compose.Role) []string {
	var out []string
	for _, name := range sortedKeys(pl.p.Services) {
		if pl.c.Roles[name] == role {
			out = append(out, name)
		}
	}
	return out
}

// workers returns the wanted workers, sorted.
func (pl *planner) workers() ([]string, error) {
	all := pl.services(compose.RoleWorker)
	if pl.d.NoWorkers {
		return nil, nil
	}
	if len(pl.d.Only) == 0 {
		return all, nil
	}
	var unknown, wanted []string
	for _, name := range pl.d.Only {
		switch {
		case !slices.Contains(all, name):
			unknown = append(unknown, name)
		case !slices.Contains(wanted, name):
			wanted = append(wanted, name)
		}
	}
	if len(unknown) > 0 {
		return nil, &UnknownWorkerError{Names: unknown, Have: all}
	}
	slices.Sort(wanted)
	return wanted, nil
}
