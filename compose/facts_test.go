package compose

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// B7: what a source may not be, contain or lie inside.
func TestRefusedSources(t *testing.T) {
	f := sampleFacts()
	f.Refused = append(f.Refused, RefusedPath{Path: "/opt/engine/engine.sock"}, RefusedPath{Path: "/vault/ssh"}, RefusedPath{Path: "/users/user", Whole: true})
	refused := []string{
		"/", "/home", "/home/user", "/users", "/users/user", "/var", "/var/lib", "/var/lib/docker", "/var/lib/docker/volumes/x/_data",
		"/etc", "/etc/ssl/certs", "/proc", "/proc/1/root", "/sys/fs/cgroup", "/dev", "/dev/shm/x", "/run", "/run/docker.sock", "/var/run/x",
		"/home/user/.ssh", "/home/user/.ssh/id_ed25519", "/vault", "/vault/ssh", "/vault/ssh/id", "/home/user/.config", "/home/user/.config/gcloud/x",
		"/home/user/.aws", "/home/user/.gnupg/x", "/home/user/.docker/config.json", "/home/user/.kube",
		"/opt", "/opt/engine", "/opt/engine/engine.sock",
	}
	allowed := []string{
		"/home/user/project", "/home/user/project/etc", "/home/user/.sshx", "/work/project", "/srv", "/etcetera", "/opt/engine2", "/vault2",
		"/home/user/.config/other", "/tmp/x", "/var/www",
	}
	for _, p := range refused {
		if f.Refusal(p) == "" {
			t.Errorf("%s is not refused", p)
		}
	}
	for _, p := range allowed {
		if why := f.Refusal(p); why != "" {
			t.Errorf("%s is refused: %s", p, why)
		}
	}
}

// What the machine can't do is an error with what to do about it.
func TestWithFactsProblems(t *testing.T) {
	machine := func(emulated bool, change func(*workshop.Worker)) func(*workshop.Workshop, *Facts) {
		return func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Kernel.V = workshop.KernelVM
			f.Kernels = map[workshop.Kernel]KernelFacts{workshop.KernelVM: {Mechanism: MechanismVM, VM: &VMFacts{Emulated: emulated}}}
			change(&w.Workers[0])
		}
	}
	tests := []struct {
		name   string
		change func(*workshop.Workshop, *Facts)
		code   string
		says   string
	}{
		{"root", func(_ *workshop.Workshop, f *Facts) { f.UID, f.GID = 0, 0 }, "user-root", "user:"},
		{"the guard's", func(_ *workshop.Workshop, f *Facts) { f.UID, f.GID = 65532, 65532 }, "user-reserved", "another user"},
		{"the outlet's group", func(_ *workshop.Workshop, f *Facts) { f.GID = 65531 }, "user-reserved", "another user"},
		{"no init", func(_ *workshop.Workshop, f *Facts) { f.InitImage = "" }, "init-missing", "make build"},
		{"elsewhere", func(_ *workshop.Workshop, f *Facts) { f.Local = false }, "engine-elsewhere", "copy: true"},
		{"rw mount and other ids", func(_ *workshop.Workshop, f *Facts) { f.MappedIDs = "Docker is rootless" }, "ids-mapped", "would not belong to 1000:1000, as Docker is rootless (B4)"},
		{"rw mount to be made and other ids", func(_ *workshop.Workshop, f *Facts) {
			delete(f.Sources, "./output")
			f.ToCreate, f.MappedIDs = []string{"./output"}, "Docker is rootless"
		}, "ids-mapped", "--engine namespace"},
		{"secret and other ids", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Mounts, f.MappedIDs = nil, "Docker is rootless"
			w.Workers[0].Container.Secrets = []workshop.Secret{{Name: "token", Env: "TOKEN", At: at(3)}}
		}, "ids-mapped", "(B11)"},
		{"host image elsewhere", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Mounts, w.Workers[0].Container.Image, f.Local = nil, val(workshop.HostImage), false
		}, "engine-elsewhere", "name an image"},
		{"host image without a host", func(w *workshop.Workshop, _ *Facts) { w.Workers[0].Container.Image = val(workshop.HostImage) }, "host-image", "Linux"},
		{"secret elsewhere", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Mounts, f.Local = nil, false
			w.Workers[0].Container.Secrets = []workshop.Secret{{Name: "token", Env: "TOKEN", At: at(3)}}
		}, "engine-elsewhere", "secret"},
		{"secret without value", func(w *workshop.Workshop, _ *Facts) {
			w.Workers[0].Container.Secrets = []workshop.Secret{{Name: "token", Env: "TOKEN", At: at(3)}}
		}, "secret-missing", "export TOKEN"},
		{"secret without file", func(w *workshop.Workshop, _ *Facts) {
			w.Workers[0].Container.Secrets = []workshop.Secret{{Name: "token", File: val("./token.txt"), At: at(3)}}
		}, "secret-missing", "create the file ./token.txt"},
		{"a path that isn't UTF-8", func(_ *workshop.Workshop, f *Facts) {
			sf := f.Sources["./src"]
			sf.Real = "/work/project/s\xffc"
			f.Sources["./src"] = sf
		}, "mount-source-not-utf8", `s\xffc`},
		{"source missing", func(_ *workshop.Workshop, f *Facts) { delete(f.Sources, "./src") }, "mount-source-missing", "mkdir -p /work/project/src"},
		{"rw source missing outside", func(_ *workshop.Workshop, f *Facts) { delete(f.Sources, "./output") }, "mount-source-missing", "inside the project"},
		{"source refused", func(_ *workshop.Workshop, f *Facts) { f.Sources["./src"] = SourceFacts{Exists: true, Real: "/etc/ssh"} }, "mount-source-refused", "/etc"},
		{"source outside", func(_ *workshop.Workshop, f *Facts) { f.Sources["./src"] = SourceFacts{Exists: true, Real: "/srv/x"} }, "mount-outside-project", "write {source: ./src, target: /workspace/src, outside_project: true}"},
		{"rw source outside", func(_ *workshop.Workshop, f *Facts) {
			f.Sources["./output"] = SourceFacts{Exists: true, Real: "/srv/x"}
		}, "mount-outside-project", "write {source: ./output, target: /workspace/output, mode: rw, outside_project: true}"},
		{"not writable", func(_ *workshop.Workshop, f *Facts) {
			sf := f.Sources["./output"]
			sf.UID, sf.GID = 0, 0
			f.Sources["./output"] = sf
		}, "mount-not-writable", "chown -R 1000:1000 /work/project/output"},
		{"not writable, and why that user", func(_ *workshop.Workshop, f *Facts) {
			f.UserReason = "yours"
			sf := f.Sources["./output"]
			sf.UID, sf.GID = 0, 0
			f.Sources["./output"] = sf
		}, "mount-not-writable", "The user is yours."},
		{"mount below", func(_ *workshop.Workshop, f *Facts) {
			sf := f.Sources["./src"]
			sf.MountPoints = []string{"/work/project/src/a", "/b", "/c", "/d", "/e"}
			f.Sources["./src"] = sf
		}, "mount-point-below", "and 2 more"},
		{"protected and writable", func(_ *workshop.Workshop, f *Facts) {
			sf := f.Sources["./output"]
			sf.Real = "/work/project/.github/workflows"
			f.Sources["./output"] = sf
		}, "mount-protected", "read-only"},
		{"git and writable", func(_ *workshop.Workshop, f *Facts) {
			sf := f.Sources["./output"]
			sf.Real = "/work/project/.git"
			f.Sources["./output"] = sf
		}, "mount-protected", "git: rw"},
		{"gVisor in a room", func(w *workshop.Workshop, _ *Facts) { w.Workers[0].Container.Runtime = val("runsc") }, "runtime-network", "runc"},
		{"a kernel of its own", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Kernel.V, f.Kernels = workshop.KernelSandboxed, map[workshop.Kernel]KernelFacts{workshop.KernelSandboxed: {Why: "none is there", Do: "install it"}}
		}, "kernel-missing", "install it"},
		{"a kernel that isn't known", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Kernel.V, f.Kernels = workshop.KernelSandboxed, nil
		}, "kernel-missing", "never runs on this machine's"},
		{"a virtual machine", func(w *workshop.Workshop, _ *Facts) { w.Workers[0].Container.Kernel.V = workshop.KernelVM }, "kernel-missing", "can't have kernel vm here (B13): none yet"},
		{"too little memory for a kernel", func(w *workshop.Workshop, _ *Facts) {
			w.Workers[0].Container.Kernel.V, w.Workers[0].Container.Resources.Memory.V = workshop.KernelSandboxed, 127<<20
		}, "kernel-memory", "needs 128m"},
		{"too little memory for a machine", machine(false, func(w *workshop.Worker) { w.Container.Resources.Memory.V = 191 << 20 }), "kernel-memory", "needs 192m"},
		{"too little memory for an emulated machine", machine(true, func(w *workshop.Worker) { w.Container.Resources.Memory.V = 383 << 20 }), "kernel-memory", "write `memory: 384M`"},
		{"sockets for a machine", machine(false, func(w *workshop.Worker) { w.Container.Mounts[0].AllowSockets = true }), "kernel-sockets", "remove `sockets: allow`"},
		{"a runtime that isn't there", func(w *workshop.Workshop, f *Facts) {
			w.Workers[0].Container.Runtime = val("crun")
			f.Runtimes = []string{"io.containerd.runc.v2", "runc"}
		}, "runtime-missing", "It has io.containerd.runc.v2, runc."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, f := sample(t, 1), sampleFacts()
			tt.change(w, &f)
			_, list := WithFacts(compiled(t, w), f)
			for _, d := range list {
				if d.Code == tt.code && strings.Contains(d.Summary+d.Detail+d.Hint, tt.says) {
					return
				}
			}
			t.Errorf("want %s with %q, got %v", tt.code, tt.says, list)
		})
	}
}

// The same problem of an inherited mount is told once.
func TestProblemsAreToldOnce(t *testing.T) {
	f := sampleFacts()
	delete(f.Sources, "./src")
	if _, list := WithFacts(compiled(t, sample(t, 5)), f); len(list) != 1 {
		t.Errorf("got %v", list)
	}
}

// An access control list may let the worker in: the gate decides.
func TestACLIsLeftToTheGate(t *testing.T) {
	f := sampleFacts()
	f.Sources["./output"] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/output", Mode: 0o700, ACL: true}
	withFacts(t, compiled(t, sample(t, 1)), f)
}

// WithFacts leaves what it was given as it was.
func TestWithFactsCopies(t *testing.T) {
	c := compiled(t, sample(t, 2))
	before := string(composeYAML(t, c))
	full := withFacts(t, c, sampleFacts())
	if after := string(composeYAML(t, c)); after != before {
		t.Error("the compiled project changed")
	}
	if string(composeYAML(t, full)) != before {
		t.Error("a project with facts renders another compose.yaml")
	}
	again := withFacts(t, full, sampleFacts())
	if len(again.Project.Services["worker-0"].Volumes) != len(full.Project.Services["worker-0"].Volumes) {
		t.Error("facts are added twice")
	}
}

// Names of the generated project are refused as workers, all at once.
func TestReservedNames(t *testing.T) {
	w := sample(t, 4)
	for i, name := range []string{"guard", "room", "room-x", "roomy"} {
		w.Workers[i].Name = name
	}
	_, err := Compile(w)
	if err == nil || strings.Count(err.Error(), "can't be called") != 3 {
		t.Errorf("Compile = %v", err)
	}
}

// B26, B31, B45: the guard is told which upstreams the user named; what is
// rendered doesn't depend on that.
func TestUserUpstreams(t *testing.T) {
	upstream := func(s string, o workshop.Origin) workshop.Upstream {
		u := workshop.Upstream{NamedBy: o}
		u.V, u.Source.Template = s, "${X:-}"
		return u
	}
	compiled := func(o workshop.Origin) *Compiled {
		w := sample(t, 1)
		w.Container.Network.Proxy = upstream("http://me:secret@LocalHost:3128", o)
		w.Container.Network.DNS = []workshop.Upstream{upstream("127.0.0.53", o), upstream("198.51.100.53", workshop.OfFile)}
		c, err := Compile(w)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var rendered []string
	for _, tt := range []struct {
		origin workshop.Origin
		want   string
	}{
		{workshop.OfFile, ""},
		{workshop.OfUser, "127.0.0.53:53,localhost:3128"},
	} {
		c := compiled(tt.origin)
		files, err := Render(c)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range files {
			text += string(f.Data)
		}
		rendered = append(rendered, text)
		ready, _ := WithFacts(c, sampleFacts())
		got := ""
		if v := ready.Project.Services[GuardService].Environment[firewall.UserUpstreamsEnv]; v != nil {
			got = *v
		}
		if got != tt.want {
			t.Errorf("origin %v: the guard has %q, want %q", tt.origin, got, tt.want)
		}
	}
	if rendered[0] != rendered[1] || strings.Contains(rendered[1], "127.0.0.53") {
		t.Error("what is rendered depends on whose word a variable is")
	}
}

// TestGuardsAddresses: the guard alone has the addresses of the machine that it must close.
func TestGuardsAddresses(t *testing.T) {
	for _, has := range []bool{false, true} {
		f, want := sampleFacts(), map[string]string{firewall.HostAddrsEnv: "", firewall.LoopbackAddrsEnv: ""}
		f.HostAddrs = nil
		if has {
			f.HostAddrs, f.LoopbackAddrs = []string{"198.51.100.1"}, []string{"10.0.2.2", "10.0.2.3"}
			want[firewall.HostAddrsEnv], want[firewall.LoopbackAddrsEnv] = "198.51.100.1", "10.0.2.2,10.0.2.3"
		}
		ready, _ := WithFacts(compiled(t, sample(t, 1)), f)
		for name, service := range ready.Project.Services {
			for variable, value := range want {
				got := service.Environment[variable]
				if is := name == GuardService && value != ""; (got != nil) != is || is && *got != value {
					t.Errorf("%s has %s %v, want %q", name, variable, got, value)
				}
			}
		}
	}
}
