package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

// Cache is a cache of any project on an engine.
type Cache struct {
	// Name is the engine's name of the volume, and identifies it together with
	// Project.
	Name, Project string
	// Directory is the project's, Worker and Cache whose it is: text of labels.
	Directory, Worker, Cache string
	Created                  time.Time
	// InUse: a container has it, running or not.
	InUse bool
	// Size on disk in bytes; -1: not known.
	Size int64
}

// CacheOf returns the cache of a volume with labels; false if it isn't one.
func CacheOf(o Object) (Cache, bool) {
	worker, cache, ok := strings.Cut(o.Labels[compose.LabelCache], "/")
	if !ok || o.Labels[compose.LabelDirectory] == "" || o.Labels[LabelProject] == "" {
		return Cache{}, false
	}
	return Cache{Name: o.Name, Project: o.Labels[LabelProject], Directory: o.Labels[compose.LabelDirectory], Worker: worker, Cache: cache, Size: -1}, true
}

// siftCaches moves the caches from the volumes.
func (o *Observed) siftCaches() {
	o.Volumes = slices.DeleteFunc(o.Volumes, func(v Object) bool {
		_, ok := CacheOf(v)
		if ok {
			o.Caches = append(o.Caches, v)
		}
		return ok
	})
}

// GrantsChanged is the cause of a step that creates a cache where there is one of
// the same worker with other grants.
const GrantsChanged = "what its worker is granted changed"

// superseded lists the observed caches of a key that have another name: those of the
// same worker with other grants.
func (pl *planner) superseded(key string) []Object {
	name := VolumeName(pl.p, key)
	var out []Object
	for _, v := range pl.o.Caches {
		if v.Labels[LabelVolume] == key && v.Name != name && OfProject(v.Labels, pl.c) {
			out = append(out, v)
		}
	}
	return out
}

// prepareCache creates a missing cache of a worker that is started, and gives it to
// the worker's user: also an existing one, because an interrupted run may have created
// it only. That of a running worker isn't touched.
func (pl *planner) prepareCache(key string, of action) {
	if of != create && of != start {
		return
	}
	name := VolumeName(pl.p, key)
	if _, exists := find(pl.o.Caches, name); !exists {
		cause := "not found"
		if len(pl.superseded(key)) > 0 {
			cause = GrantsChanged
		}
		pl.fresh[key] = pl.add(Step{Op: OpCreateVolume, Target: "volume/" + name, Key: key, Cause: cause}, pl.barrier...)
		pl.volumes[key] = pl.fresh[key]
	}
	pl.volumes[key] = pl.add(Step{Op: OpFillVolume, Target: "volume/" + name, Key: key, Cause: "its worker is not started yet"}, pl.init, pl.fresh[key])
}

// removeSuperseded removes the caches that a worker had with other grants, once it
// is ready with the new ones.
func (pl *planner) removeSuperseded(decisions map[string]decision) {
	for _, key := range sortedKeys(pl.c.Caches) {
		worker := pl.c.Caches[key].Worker
		if decisions[worker].action != create {
			continue
		}
		for _, v := range pl.superseded(key) {
			if !pl.hasUser(v.Name) {
				pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + v.Name, ObjectID: v.Name, Key: key, Cause: GrantsChanged}, pl.ready[worker])
			}
		}
	}
}

// hasUser reports whether a container that stays has a volume.
func (pl *planner) hasUser(name string) bool {
	return slices.ContainsFunc(pl.o.Containers, func(c Container) bool {
		return pl.removed[c.ID] == 0 && slices.Contains(c.Volumes, name)
	})
}

// PlanDownWithCaches is [PlanDown], and removes the directory's caches too.
func PlanDownWithCaches(o Observed, directory string) (*Plan, error) {
	plan, err := PlanDown(o, directory)
	if err != nil {
		return nil, err
	}
	pl := newPlanner(Desired{}, o)
	pl.plan = plan
	var all []int
	for _, s := range plan.Steps {
		if s.Op == OpRemoveContainer {
			all = append(all, s.ID)
		}
	}
	for _, v := range o.Caches {
		if directory == "" || v.Labels[compose.LabelDirectory] == directory {
			pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + v.Name, ObjectID: v.Name, Key: v.Labels[LabelVolume], Cause: "down"}, all...)
		}
	}
	return plan, nil
}

// withoutCaches takes its caches from a service, for an engine without containers:
// there its tools use those of its user.
func withoutCaches(s *types.ServiceConfig, caches map[string]compose.Cache) {
	s.Environment = maps.Clone(s.Environment)
	s.Volumes = slices.DeleteFunc(slices.Clone(s.Volumes), func(v types.ServiceVolumeConfig) bool {
		x, ok := caches[v.Source]
		if !ok || v.Type != types.VolumeTypeVolume {
			return false
		}
		for _, name := range x.Variables {
			delete(s.Environment, name)
		}
		return true
	})
}
