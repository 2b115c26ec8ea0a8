package namespace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/client"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Labels of a container in addition to Compose's and the project's.
const (
	labelID        = "dev.llmdo.workshop.id"         // random, unique to a container
	labelNetworkOf = "dev.llmdo.workshop.network-of" // the ID of the container that it joins
	labelNetworks  = "dev.llmdo.workshop.networks"   // names, with spaces between them
)

// killed is the exit code after SIGKILL.
const killed = 137

// Observe queries the supervisor. If none is alive, nothing of the project runs,
// whatever the state files say.
func (e *Engine) Observe(ctx context.Context, project string, images ...string) (engine.Observed, error) {
	o := engine.Observed{Project: project, Images: map[string]string{}}
	list, err := e.list(ctx, project)
	if err != nil {
		return engine.Observed{}, err
	}
	rooms := byService(list)
	for _, s := range list {
		o.Containers = append(o.Containers, e.observed(project, s, rooms))
	}
	sortfunc.Stable(o.Containers, func(a, b engine.Container) int { return strings.Compare(a.Name, b.Name) })
	kept, err := readObjects(e.dir(project))
	if err != nil {
		return engine.Observed{}, err
	}
	o.Networks, o.Volumes = kept.Networks, kept.Volumes
	if o.Caches, err = e.cachesOf(project); err != nil {
		return engine.Observed{}, err
	}
	for _, ref := range images {
		id, err := e.imageID(ctx, ref)
		if err != nil {
			return engine.Observed{}, err
		}
		if id != "" {
			o.Images[ref] = id
		}
	}
	if len(images) > 0 {
		o.PolicyDigest = e.policyDigest(project, kept)
		if c, _, err := e.alive(ctx, project); err == nil && c != nil {
			o.Outdated = e.outdated(ctx, c)
		}
	}
	return o, nil
}

// stateDead is the state of a container whose supervisor doesn't respond: whether it
// runs is unknown.
const stateDead = "dead"

// list returns the containers of a project.
func (e *Engine) list(ctx context.Context, project string) ([]api.Seen, error) {
	c, silent, err := e.alive(ctx, project)
	if err != nil {
		return nil, err
	}
	if c != nil {
		within, cancel := context.WithTimeout(ctx, silentTime)
		defer cancel()
		list, err := c.List(within)
		silent = err != nil && e.fellSilent(ctx, within, project, err)
		if err == nil || !silent && !e.hasEnded(ctx, project, err) {
			return list, err
		}
	}
	f, err := client.State(e.dir(project))
	if err != nil && !isForm(err) {
		return nil, damaged(e.dir(project), api.StateName, err)
	}
	endedAll(f.Containers)
	for i := range f.Containers {
		s := &f.Containers[i]
		if silent {
			s.State, s.ExitCode = stateDead, 0
		}
		if isForm(err) && s.Container.Labels != nil {
			s.Container.Labels[compose.LabelConfigHash] = "of another version" // no supervisor of ours can start it
		}
	}
	return f.Containers, nil
}

// endedAll corrects what a supervisor recorded that isn't alive: nothing of it runs.
func endedAll(list []api.Seen) {
	for i := range list {
		s := &list[i]
		if s.State == api.Running {
			s.ExitCode = killed
		}
		if s.State != api.Created {
			s.State, s.Ready = api.Exited, false
		}
	}
}

func byService(list []api.Seen) map[string]api.Seen {
	all := map[string]api.Seen{}
	for _, s := range list {
		all[s.Container.Service] = s
	}
	return all
}

func (e *Engine) observed(project string, s api.Seen, all map[string]api.Seen) engine.Container {
	c, l := &s.Container, s.Container.Labels
	out := engine.Container{
		ID: l[labelID], Name: c.Name, Service: c.Service, Role: string(c.Role), Image: c.Image, ImageID: c.ImageID,
		ConfigHash: l[compose.LabelConfigHash], State: string(s.State), ExitCode: s.ExitCode, Started: s.Started,
		Directory: engine.ProjectDirectory(l), NetworkOf: l[labelNetworkOf], Machine: l[compose.LabelMachine], Networks: strings.Fields(l[labelNetworks]),
	}
	if s.State == api.Running && c.Network.Mode == spec.NetJoin && !s.Joined.Equal(all[c.Network.Of].Started) {
		out.NetworkOf += " before" // its room has been restarted since
	}
	if c.Limits.Unlimited {
		out.NotHeld = []string{"B5"}
		if _, none := e.limits(); none == nil {
			out.ConfigHash = "without limits" // now there are some
		}
	}
	if compose.IsEmulated(out.Machine) {
		out.NotHeld = append(out.NotHeld, "B13")
	}
	if s.State == api.Running && dialInGone(s) {
		out.ConfigHash = "without its door"
	}
	if s.State == api.Running {
		out.NotCompared = !e.isCompared(project, &s)
		for _, p := range c.Ports {
			out.Ports = append(out.Ports, p.Address+"->"+strconv.Itoa(int(p.Target))+"/tcp")
		}
		slices.Sort(out.Ports)
	}
	return out
}

// dialInGone reports whether a worker's dial-in directory was replaced after its
// start: a logout may remove the user's runtime directory, and `up` recreates it,
// but the worker keeps the old one.
func dialInGone(s api.Seen) bool {
	for _, m := range s.Container.Mounts {
		if m.Type != spec.Bind || m.Target != compose.DialInDir {
			continue
		}
		var st unix.Statx_t
		if err := unix.Statx(unix.AT_FDCWD, m.Source, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st); err != nil {
			return err == unix.ENOENT
		}
		// A file system without birth times doesn't tell.
		return st.Mask&unix.STATX_BTIME != 0 && time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).After(s.Started)
	}
	return false
}

// policyDigest returns the digest of the policy file that the guard starts with; ""
// if there is none.
func (e *Engine) policyDigest(project string, kept objects) string {
	for _, v := range kept.Volumes {
		if v.Labels[engine.LabelVolume] != compose.PolicyVolume || !validName(v.Name) {
			continue
		}
		f, err := os.OpenInRoot(filepath.Join(e.dir(project), api.VolumeDir, v.Name), copytree.PolicyFile)
		if err != nil {
			return ""
		}
		defer f.Close()
		h := sha256.New()
		if n, err := io.Copy(h, io.LimitReader(f, firewall.MaxPolicyBytes+1)); err != nil || n > firewall.MaxPolicyBytes {
			return ""
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	return ""
}

// one returns the container of a service of the project, which must belong to the
// directory unless that is empty.
func (e *Engine) one(ctx context.Context, project, service, directory string) (api.Seen, error) {
	list, err := e.list(ctx, project)
	if err != nil {
		return api.Seen{}, err
	}
	i := slices.IndexFunc(list, func(s api.Seen) bool { return s.Container.Service == service })
	if i < 0 {
		return api.Seen{}, &engine.NotRunningError{Project: project, Services: []string{service}}
	}
	s := list[i]
	if is := engine.ProjectDirectory(s.Container.Labels); directory != "" && is != "" && is != directory {
		return s, engine.NewForeignError(project, directory, is)
	}
	return s, nil
}
