package compose

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// addition is what the machine adds to one service; it is what the second
// file of plain Compose says.
type addition struct {
	user    string // empty: the file gives one
	volumes []types.ServiceVolumeConfig
	tmpfs   []string // those of the file again, with their owner
	sysctls types.Mapping
	labels  types.Labels
	env     map[string]string
	runtime string // empty: the file's
	pids    int64  // 0: the file's
}

func (a *addition) setEnv(name, value string) {
	if a.env == nil {
		a.env = map[string]string{}
	}
	a.env[name] = value
}

// WithFacts returns a copy of the project with what the machine is: the user,
// resolved mount sources, protected directories, secrets, the image and volume
// of workshop-init. Everything that can't be carried out here is an error in
// the list (B4, B7, B8); the project must not be used then.
func WithFacts(c *Compiled, f Facts) (*Compiled, diag.List) {
	if c.base != nil {
		c = c.base
	}
	out := *c
	out.base, out.Facts, out.added = c, &f, make(map[string]*addition, len(c.Roles))
	out.Copies = copiesWithFacts(c.Copies, &f)
	project := *c.Project
	out.Project = &project
	project.WorkingDir = f.ProjectDir
	if f.Project != "" {
		project.Name = f.Project
	}
	project.Services = make(types.Services, len(c.Project.Services))
	project.Volumes = maps.Clone(c.Project.Volumes)

	m := &machine{c: c, f: &f}
	m.general()
	for _, name := range sortedKeys(c.Project.Services) {
		s := c.Project.Services[name]
		a := &addition{labels: types.Labels{LabelDirectory: f.ProjectDir}}
		if c.Roles[name] != RoleWorker {
			a.runtime = f.ownRuntime()
		}
		switch c.Roles[name] {
		case RoleWorker:
			m.worker(&s, a)
		case RoleRoom:
			if f.IPv6 {
				a.sysctls = types.Mapping{"net.ipv6.conf.all.disable_ipv6": "0"}
			}
		case RoleGuard:
			m.policyVolume(&s, &project)
			m.givePorts(&s)
			s.Environment = maps.Clone(s.Environment)
			for name, list := range map[string][]string{
				firewall.HostAddrsEnv:     f.HostAddrs,
				firewall.LoopbackAddrsEnv: f.LoopbackAddrs,
				firewall.UserUpstreamsEnv: c.userUpstreams(),
			} {
				if len(list) > 0 {
					s.Environment[name] = ptr(strings.Join(list, ","))
				}
			}
		}
		apply(&s, a, &f)
		project.Services[name] = s
		out.added[name] = a
	}
	if c.Policy != nil && c.Policy.HasEndpoints() {
		out.Policy = c.Policy.WithRoots(f.Roots)
	}
	if f.InitVolume != "" {
		project.Volumes[ToolsVolume] = types.VolumeConfig{Name: f.InitVolume, External: true}
		if m.readable {
			project.Volumes[ReadableToolsVolume] = types.VolumeConfig{Name: f.InitVolume + readableSuffix, External: true}
		}
	}
	m.caches(&out)
	m.own(&project)
	return &out, m.list.unique()
}

// machine is one run of WithFacts.
type machine struct {
	c    *Compiled
	f    *Facts
	list problems

	readable bool // a worker has the readable tool volume
}

// own labels networks and volumes as this directory's. Compose's labels tell no
// project from another one of its name: what has none of ours is never removed.
func (m *machine) own(p *types.Project) {
	p.Networks = maps.Clone(p.Networks)
	for key, n := range p.Networks {
		n.Labels = types.Labels{LabelDirectory: m.f.ProjectDir}
		p.Networks[key] = n
	}
	for key, v := range p.Volumes {
		if !v.External {
			v.Labels = types.Labels{LabelDirectory: m.f.ProjectDir}
			if x, ok := m.c.Caches[key]; ok {
				v.Labels[LabelCache] = x.Worker + "/" + x.Name
			}
			p.Volumes[key] = v
		}
	}
}

// apply puts an addition into a copy of a service.
func apply(s *types.ServiceConfig, a *addition, f *Facts) {
	if a.user != "" {
		s.User = a.user
	}
	if s.Image == initImage && f.InitImage != "" {
		s.Image = f.InitImage
	}
	s.Runtime = cmp.Or(a.runtime, s.Runtime)
	s.PidsLimit = cmp.Or(a.pids, s.PidsLimit)
	s.Volumes = append(slices.Clone(s.Volumes), a.volumes...)
	if len(a.tmpfs) > 0 {
		s.Tmpfs = a.tmpfs
	}
	if len(a.sysctls) > 0 {
		s.Sysctls = maps.Clone(s.Sysctls)
		maps.Copy(s.Sysctls, a.sysctls)
	}
	s.Labels = maps.Clone(s.Labels)
	maps.Copy(s.Labels, a.labels)
	if len(a.env) > 0 {
		s.Environment = maps.Clone(s.Environment)
	}
	for name, value := range a.env {
		s.Environment[name] = ptr(value)
	}
}

// general checks what concerns every workshop.
func (m *machine) general() {
	where := diag.Range{}
	if m.c.workshop != nil {
		where.Filename = m.c.workshop.File
	}
	if m.f.UID == 0 || m.f.GID == 0 {
		m.list.add("user-root", where, "workers can't run as root (B4)",
			"The machine gives uid "+userOf("", m.f)+" for the workers.", "set `user: \"1000:1000\"` in container")
	}
	if workshop.ReservedID(m.f.UID) || workshop.ReservedID(m.f.GID) {
		m.list.add("user-reserved", where, "workers can't run as "+userOf("", m.f)+": the guard or the outlet has that id (B60)",
			"The user comes from "+cmp.Or(m.f.UserReason, "the caller")+". The kernel limits some resources, such as watches, per uid: workers could exhaust those of the guard.",
			"run workshop as another user, or, as root, set `user: \"1000:1000\"` in container")
	}
	if m.f.InitImage == "" || m.f.InitVolume == "" {
		m.list.add("init-missing", where, "image or tool volume of workshop-init is not known",
			"Workers can't start without them.", "run `make build`, then try again")
	}
}

// worker adds the machine's part of a worker.
func (m *machine) worker(s *types.ServiceConfig, a *addition) {
	if s.User == "" {
		a.user = userOf("", m.f)
	}
	user := userOf(s.User, m.f)
	a.tmpfs = ownedTmpfs(s.Tmpfs, user)
	s.Volumes = slices.Clone(s.Volumes)
	if m.f.Local {
		a.volumes = append(a.volumes, identityMounts(m.f.RuntimeDir, user, m.f)...)
	}
	if m.c.hasDoor(s.Name, m.f) {
		a.volumes = append(a.volumes, dialInMount(s.Name, m.f)...)
	}
	m.copyLabels(s, a)
	w := m.c.definition(s.Name)
	if w == nil {
		return
	}
	k := &w.Container
	if !k.Kernel.V.Own() {
		m.runtime(w, m.c.RoomOf[s.Name])
	}
	m.kernel(s, a, w)
	m.hostImage(k, a)
	for i := range k.Mounts {
		m.mount(s, a, k, &k.Mounts[i], user)
	}
	m.linked(s, a, k, user)
	m.author(s, a, k)
	for i := range k.Secrets {
		m.secret(a, &k.Secrets[i], user)
	}
}

// policyVolume replaces the rendered bind of ./guard by a volume that the
// engine fills: it works on engines elsewhere too.
func (m *machine) policyVolume(s *types.ServiceConfig, p *types.Project) {
	s.Volumes = slices.Clone(s.Volumes)
	for i := range s.Volumes {
		if s.Volumes[i].Target == PolicyDir {
			s.Volumes[i] = volume(PolicyVolume, PolicyDir)
		}
	}
	p.Volumes[PolicyVolume] = types.VolumeConfig{}
}

// definition returns the workshop's worker of a service, nil if there is none.
func (c *Compiled) definition(service string) *workshop.Worker { return c.workers[service] }

// absolute is a path of the workshop on this machine.
func (f *Facts) absolute(p string) string {
	if path.IsAbs(p) {
		return path.Clean(p)
	}
	return path.Join(f.ProjectDir, p)
}

// WorkshopFiles lists the files that the workshop was loaded from, relative to
// the project directory.
func (c *Compiled) WorkshopFiles() []string {
	if c.workshop == nil {
		return nil
	}
	dir := path.Dir(c.workshop.File)
	files := []string{path.Base(c.workshop.File)}
	add := func(f string) {
		if dir != "." {
			f = strings.TrimPrefix(f, dir+"/")
		}
		files = append(files, f)
	}
	for i := range c.workshop.Workers {
		w := &c.workshop.Workers[i]
		if w.File == "" || w.From != "" {
			continue
		}
		if w.File != c.workshop.File { // else it is defined there
			add(w.File)
		}
		if schema := w.Definition.ResultFile.Name; schema != "" {
			add(path.Join(path.Dir(w.File), schema))
		}
	}
	return files
}
