package engine

import (
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
)

func find(objects []Object, name string) (Object, bool) {
	i := slices.IndexFunc(objects, func(o Object) bool { return o.Name == name })
	if i < 0 {
		return Object{}, false
	}
	return objects[i], true
}

// removeTwins removes duplicate networks: an engine may finish creating one for a
// run that was killed. The one that a container has used stays.
func (pl *planner) removeTwins() {
	had := func(n Object) bool {
		return slices.ContainsFunc(pl.o.Containers, func(c Container) bool { return slices.Contains(c.NetworkIDs, n.ID) })
	}
	var kept []Object
	for _, n := range pl.o.Networks {
		i := slices.IndexFunc(kept, func(o Object) bool { return o.Name == n.Name })
		if i < 0 {
			kept = append(kept, n)
			continue
		}
		twin := n
		if !had(kept[i]) {
			twin, kept[i] = kept[i], n
		}
		pl.network[twin.Labels[LabelNetwork]] = pl.add(Step{Op: OpRemoveNetwork, Target: "network/" + twin.Name, ObjectID: twin.ID, Cause: "duplicate name"})
	}
	pl.o.Networks = kept
}

// changedNetworks lists existing networks with another configuration.
func (pl *planner) changedNetworks() map[string]bool {
	out := map[string]bool{}
	for key := range pl.p.Networks {
		if have, ok := find(pl.o.Networks, NetworkName(pl.p, key)); ok {
			out[key] = have.Labels[compose.LabelConfigHash] != NetworkHash(pl.p, key)
		}
	}
	return out
}

// changedCopies maps stale copies to the cause. Copies from a changed source are
// always replaced: no worker may keep files that are now excluded (B9). Changed
// files are copied again for wanted workers only.
func (pl *planner) changedCopies(wanted []string) map[string]string {
	out := map[string]string{}
	for key, c := range pl.c.Copies {
		have, ok := find(pl.o.Volumes, VolumeName(pl.p, key))
		isWanted := slices.ContainsFunc(wanted, func(w string) bool { return uses(pl.p.Services[w], key) })
		switch {
		case !ok:
		case have.Labels[compose.LabelConfigHash] != CopyHash(c):
			out[key] = "source of the copy of " + c.Source + " changed"
		case otherFiles(have, c) && isWanted:
			out[key] = "copy of " + c.Source + " changed"
		}
	}
	return out
}

func otherFiles(have Object, c compose.Copy) bool {
	return c.Digest != "" && have.Labels[compose.LabelContent] != c.Digest
}

// CopyChanged reports whether the volume of a copy exists and has another source,
// or other files.
func CopyChanged(c *compose.Compiled, o Observed, key string) bool {
	have, ok := find(o.Volumes, VolumeName(c.Project, key))
	return ok && (have.Labels[compose.LabelConfigHash] != CopyHash(c.Copies[key]) || otherFiles(have, c.Copies[key]))
}

// CopyUser returns the name of a container with the volume of a copy, or "".
func CopyUser(c *compose.Compiled, o Observed, key string) string {
	for _, k := range o.Containers {
		if uses(c.Project.Services[k.Service], key) {
			return k.Name
		}
	}
	return ""
}

// initName is the name of our own image in plans, as its reference is a digest. On
// engines without images it is the program itself.
const initName = "workshop-init"

// prepareImages adds the steps that get the images of created containers.
func (pl *planner) prepareImages(decisions map[string]decision) error {
	initImage, tools := "", map[string]bool{}
	if pl.c.Facts != nil {
		initImage = pl.c.Facts.InitImage
	}
	if initImage != "" && pl.o.Images[initImage] == "" {
		pl.init = pl.add(Step{Op: OpLoadInit, Target: "image/" + initName, Key: initImage, Cause: "not found"})
	}
	for _, service := range sortedKeys(decisions) {
		if decisions[service].action == leave {
			continue
		}
		s := pl.p.Services[service]
		for _, key := range toolVolumes {
			tools[key] = tools[key] || uses(s, key)
		}
		ref := ImageRef(pl.d, service)
		if ref == initImage || pl.images[ref] != 0 {
			continue
		}
		step, err := pl.image(service, ref, s)
		if err != nil {
			return err
		}
		if step != 0 {
			pl.images[ref] = step
			pl.barrier = append(pl.barrier, step)
		}
	}
	for _, key := range toolVolumes {
		if tools[key] {
			pl.tools[key] = pl.add(Step{Op: OpFillTools, Target: "volume/" + VolumeName(pl.p, key), Key: key, Cause: "before every start"}, pl.init)
		}
	}
	return nil
}

func (pl *planner) image(service, ref string, s types.ServiceConfig) (int, error) {
	step := Step{Target: "image/" + ref, Key: ref, Service: service, Cause: "not found"}
	missing := pl.o.Images[ref] == ""
	switch {
	case s.Build != nil:
		if !missing {
			return 0, nil
		}
		step.Op = OpBuildImage
	case missing && pl.otherImage(ref):
		return 0, &LockedImageError{Image: ref, Tag: tagOf(ref), Service: service}
	case s.PullPolicy == types.PullPolicyAlways && !pl.d.Pulled:
		step.Op, step.Cause = OpPullImage, "pull: always"
	case missing && s.PullPolicy == types.PullPolicyNever:
		return 0, &MissingImageError{Image: ref, Service: service}
	case missing:
		step.Op = OpPullImage
	default:
		return 0, nil
	}
	return pl.add(step), nil
}

// otherImage reports whether the engine has another image by the tag of a reference with
// a digest, which somebody put there by hand.
func (pl *planner) otherImage(ref string) bool {
	_, there := pl.o.Digests[tagOf(ref)]
	return there
}

// prepareNetworks replaces changed networks, removes orphans, and creates missing
// ones.
func (pl *planner) prepareNetworks(decisions map[string]decision) {
	users := func(name string) []int {
		var after []int
		for _, c := range pl.o.Containers {
			if slices.Contains(c.Networks, name) {
				after = append(after, pl.removed[c.ID])
			}
		}
		return after
	}
	wanted := map[string]bool{}
	changed := pl.changedNetworks()
	for _, key := range sortedKeys(pl.p.Networks) {
		n := pl.p.Networks[key]
		name := NetworkName(pl.p, key)
		wanted[name] = true
		if bool(n.External) || !pl.used(decisions, key) {
			continue
		}
		have, exists := find(pl.o.Networks, name)
		step := Step{Op: OpCreateNetwork, Target: "network/" + name, Key: key, Cause: "not found"}
		switch {
		case !exists:
			pl.network[key] = pl.add(step, pl.barrier...)
		case changed[key]:
			gone := pl.add(Step{Op: OpRemoveNetwork, Target: "network/" + name, ObjectID: have.ID, Cause: ConfigurationChanged}, users(name)...)
			step.Cause = ConfigurationChanged
			pl.network[key] = pl.add(step, gone)
		}
	}
	for _, n := range pl.o.Networks {
		if !wanted[n.Name] {
			pl.add(Step{Op: OpRemoveNetwork, Target: "network/" + n.Name, ObjectID: n.ID, Cause: "no longer in the workshop"}, users(n.Name)...)
		}
	}
}

func (pl *planner) used(decisions map[string]decision, network string) bool {
	for service, d := range decisions {
		if _, ok := pl.p.Services[service].Networks[network]; ok && d.action != leave {
			return true
		}
	}
	return false
}

// prepareVolumes creates volumes and fills the policy and the copies. A copy is
// replaced only if every container that uses it is recreated, so it never changes
// under a running worker.
func (pl *planner) prepareVolumes(decisions map[string]decision) {
	wanted := map[string]bool{}
	for _, key := range sortedKeys(pl.p.Volumes) {
		v := pl.p.Volumes[key]
		name := VolumeName(pl.p, key)
		wanted[name] = true
		if bool(v.External) || slices.Contains(toolVolumes, key) {
			continue
		}
		if x, isCache := pl.c.Caches[key]; isCache {
			pl.prepareCache(key, decisions[x.Worker].action)
			continue
		}
		made, stays, gone := pl.volumeUsers(decisions, key)
		if !made && !stays {
			continue
		}
		_, exists := find(pl.o.Volumes, name)
		_, isCopy := pl.c.Copies[key]
		cause := "not found"
		if exists && isCopy && made && !stays {
			cause = "its users are recreated"
			gone = append(gone, pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + name, ObjectID: name, Key: key, Cause: cause}, gone...))
			exists = false
		}
		if !exists {
			pl.fresh[key] = pl.add(Step{Op: OpCreateVolume, Target: "volume/" + name, Key: key, Cause: cause}, append(gone, pl.barrier...)...)
			pl.volumes[key] = pl.fresh[key]
		}
		if isCopy && !exists || key == compose.PolicyVolume && (made || pl.startsWithOldPolicy(decisions)) {
			after := append([]int{pl.init, pl.fresh[key]}, gone...)
			pl.volumes[key] = pl.add(Step{Op: OpFillVolume, Target: "volume/" + name, Key: key, Cause: "its users are not started yet"}, after...)
		}
	}
	for _, v := range pl.o.Volumes {
		if !wanted[v.Name] {
			var after []int
			for _, c := range pl.o.Containers {
				after = append(after, pl.removed[c.ID])
			}
			pl.add(Step{Op: OpRemoveVolume, Target: "volume/" + v.Name, ObjectID: v.Name, Cause: "no longer in the workshop"}, after...)
		}
	}
}

// volumeUsers reports whether a volume is used by created containers and by ones
// that stay, and returns the steps that remove old users.
func (pl *planner) volumeUsers(decisions map[string]decision, key string) (made, stays bool, gone []int) {
	for _, service := range sortedKeys(decisions) {
		if !uses(pl.p.Services[service], key) {
			continue
		}
		switch decisions[service].action {
		case create:
			made = true
		case keep, start:
			stays = true
		case leave:
			if _, exists := pl.byService[service]; exists {
				stays = true
			}
		}
	}
	for _, c := range pl.o.Containers {
		if id := pl.removed[c.ID]; id != 0 && (uses(pl.p.Services[c.Service], key) || c.Helper || c.Service == "") {
			gone = append(gone, id)
		}
	}
	return made, stays, gone
}
