package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// project is one with a room, a guard and a worker "w", changed by change.
func project(change func(s *types.ServiceConfig, c *compose.Compiled)) engine.Desired {
	hardened := func(name, user string) types.ServiceConfig {
		s := types.ServiceConfig{Name: name}
		s.Image, s.User, s.ReadOnly, s.CapDrop = "sha256:init", user, true, []string{"ALL"}
		s.SecurityOpt = []string{"no-new-privileges:true", "seccomp:./seccomp.json"}
		s.MemLimit, s.MemSwapLimit, s.CPUS, s.PidsLimit = 1<<20, 1<<20, 0.1, 16
		s.Entrypoint = types.ShellCommand{"/workshop-init", name}
		return s
	}
	room, guard, w := hardened("room", "0:0"), hardened("guard", "65532:65532"), hardened("w", "1000:1000")
	room.NetworkMode, room.Hostname, w.NetworkMode = "none", "workshop", "service:room"
	guard.Networks = map[string]*types.ServiceNetworkConfig{"default": nil}
	w.Image = "worker:1"
	c := &compose.Compiled{
		Project: &types.Project{Name: "p", Volumes: types.Volumes{"tools": {Name: "workshop-init-1", External: true}, "data": {}}, Networks: types.Networks{"default": {Driver: "bridge"}}},
		Roles:   map[string]compose.Role{"w": compose.RoleWorker, "room": compose.RoleRoom, "guard": compose.RoleGuard},
		RoomOf:  map[string]string{"w": "room"},
		Seccomp: []byte("{}"), Policy: &firewall.Policy{},
		Facts: &compose.Facts{ProjectDir: "/work/p", InitImage: "sha256:init"},
	}
	c.Project.Services = types.Services{"room": room, "guard": guard}
	if change != nil {
		change(&w, c)
	}
	c.Project.Services["w"] = w
	return engine.Desired{Compiled: c}
}

func other(name string, change func(*types.ServiceConfig)) func(*types.ServiceConfig, *compose.Compiled) {
	return func(_ *types.ServiceConfig, c *compose.Compiled) {
		s := c.Project.Services[name]
		change(&s)
		c.Project.Services[name] = s
	}
}

// What can't be said or kept is an error that names it.
func TestTranslateRefusals(t *testing.T) {
	yes := true
	mount := func(v types.ServiceVolumeConfig) func(*types.ServiceConfig, *compose.Compiled) {
		return func(s *types.ServiceConfig, _ *compose.Compiled) { s.Volumes = append(s.Volumes, v) }
	}
	tmpfs := func(lines ...string) func(*types.ServiceConfig, *compose.Compiled) {
		return func(s *types.ServiceConfig, _ *compose.Compiled) { s.Tmpfs = lines }
	}
	of := func(change func(*types.ServiceConfig)) func(*types.ServiceConfig, *compose.Compiled) {
		return func(s *types.ServiceConfig, _ *compose.Compiled) { change(s) }
	}
	for i, tt := range []struct {
		service, want string
		change        func(*types.ServiceConfig, *compose.Compiled)
	}{
		{"w", "does not support Privileged", of(func(s *types.ServiceConfig) { s.Privileged = true })},
		{"w", "does not support Platform", of(func(s *types.ServiceConfig) { s.Platform = "linux/arm64" })},
		{"w", "does not support Devices", of(func(s *types.ServiceConfig) { s.Devices = []types.DeviceMapping{{Source: "/dev/kvm"}} })},
		{"w", "does not support Pid", of(func(s *types.ServiceConfig) { s.Pid = "host" })},
		{"w", "does not support UserNSMode", of(func(s *types.ServiceConfig) { s.UserNSMode = "host" })},
		{"w", "Volumes.Bind.SELinux", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "/y", Bind: &types.ServiceVolumeBind{SELinux: "z"}})},
		{"w", "Volumes.Tmpfs", mount(types.ServiceVolumeConfig{Type: "tmpfs", Target: "/y", Tmpfs: &types.ServiceVolumeTmpfs{Size: 1}})},
		{"guard", "Internal", func(_ *types.ServiceConfig, c *compose.Compiled) {
			c.Project.Networks["default"] = types.NetworkConfig{Internal: true}
		}},
		{"guard", "driver", func(_ *types.ServiceConfig, c *compose.Compiled) {
			c.Project.Networks["default"] = types.NetworkConfig{Driver: "macvlan"}
		}},
		{"guard", "settings for the guard", other("guard", func(s *types.ServiceConfig) { s.Networks["default"] = &types.ServiceNetworkConfig{} })},
		{"x", "no service", nil},
		{"w", "not a worker, room, outlet or guard", func(_ *types.ServiceConfig, c *compose.Compiled) { delete(c.Roles, "w") }},
		{"w", "needs the docker engine", of(func(s *types.ServiceConfig) { s.Build = &types.BuildConfig{Context: "."} })},
		{"w", "must be read-only (B3)", of(func(s *types.ServiceConfig) { s.ReadOnly = false })},
		{"room", "must be workshop-init's", other("room", func(s *types.ServiceConfig) { s.Image = "x" })},

		{"w", "not an absolute path", of(func(s *types.ServiceConfig) { s.Entrypoint = nil })},
		{"w", "not an absolute path", of(func(s *types.ServiceConfig) { s.Entrypoint = types.ShellCommand{"gate"} })},
		{"w", "has no value", of(func(s *types.ServiceConfig) { s.Environment = types.MappingWithEquals{"A": nil} })},
		{"w", "working directory", of(func(s *types.ServiceConfig) { s.WorkingDir = "x" })},
		{"w", "restart policy", of(func(s *types.ServiceConfig) { s.Restart = "always" })},
		{"w", "init: true", of(func(s *types.ServiceConfig) { s.Init = &yes })},
		{"w", `runtime "runsc"`, of(func(s *types.ServiceConfig) { s.Runtime = "runsc" })},

		{"w", "as root", of(func(s *types.ServiceConfig) { s.User = "0:0" })},
		{"w", "as root", of(func(s *types.ServiceConfig) { s.User = "1000:0" })},
		{"w", "as root", of(func(s *types.ServiceConfig) { s.User = "" })},
		{"w", "no user", of(func(s *types.ServiceConfig) { s.User = "node" })},
		{"w", "no user", of(func(s *types.ServiceConfig) { s.User = "01000:1000" })},
		{"guard", "never root", other("guard", func(s *types.ServiceConfig) { s.User = "0:0" })},
		{"guard", "in numbers", other("guard", func(s *types.ServiceConfig) { s.User = "guard" })},

		{"w", "never recursive", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "/y", Bind: &types.ServiceVolumeBind{Recursive: "enabled"}})},
		{"w", "always private", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "/y", Bind: &types.ServiceVolumeBind{Propagation: "rshared"}})},
		{"w", `source of /y, "/x\xff", is not UTF-8`, mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x\xff", Target: "/y"})},
		{"w", "gone", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/gone", Target: "/y"})},
		{"w", "not absolute", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "y"})},
		{"w", "volume type", mount(types.ServiceVolumeConfig{Type: "npipe", Source: "/x", Target: "/y"})},
		{"w", "not in the project", mount(types.ServiceVolumeConfig{Type: "volume", Source: "x", Target: "/y"})},
		{"w", "never filled from the image", mount(types.ServiceVolumeConfig{Type: "volume", Source: "data", Target: "/y"})},
		{"w", "is writable", mount(types.ServiceVolumeConfig{Type: "volume", Source: "tools", Target: "/y", Volume: &types.ServiceVolumeVolume{NoCopy: true}})},
		{"w", "is external", func(s *types.ServiceConfig, c *compose.Compiled) {
			c.Project.Volumes["data"] = types.VolumeConfig{Name: "d", External: true}
			s.Volumes = []types.ServiceVolumeConfig{{Type: "volume", Source: "data", Target: "/y", Volume: &types.ServiceVolumeVolume{NoCopy: true}}}
		}},
		{"w", "not valid as a directory name", func(s *types.ServiceConfig, c *compose.Compiled) {
			c.Project.Volumes["data"] = types.VolumeConfig{Name: "../../x"}
			s.Volumes = []types.ServiceVolumeConfig{{Type: "volume", Source: "data", Target: "/y", Volume: &types.ServiceVolumeVolume{NoCopy: true}}}
		}},
		{"w", "two mounts at /y", func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Volumes = []types.ServiceVolumeConfig{{Type: "bind", Source: "/x", Target: "/y"}, {Type: "bind", Source: "/z", Target: "/y/"}}
		}},
		{"w", "mounted at /proc/sys", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "/a/../proc/sys"})},
		{"w", "mounted at /", mount(types.ServiceVolumeConfig{Type: "bind", Source: "/x", Target: "/"})},

		{"w", "no size", tmpfs("/x:rw")},
		{"w", "no size", tmpfs("/x")},
		{"w", "is not valid", tmpfs("/x:size=0")},
		{"w", "is not valid", tmpfs("/x:size=10%")},
		{"w", "is not valid", tmpfs("/x:size=9999999999g")},
		{"w", "is not valid", tmpfs("/x:size=1m,mode=4777")},
		{"w", "is not valid", tmpfs("/x:size=1m,uid=-1")},
		{"w", "is not valid", tmpfs("/x:size=1m,rw=1")},
		{"w", `does not support the option "suid"`, tmpfs("/x:size=1m,suid")},
		{"w", `does not support the option "nr_inodes=5"`, tmpfs("/x:size=1m,nr_inodes=5")},
		{"w", "duplicate option", tmpfs("/x:size=1m,size=2m")},
		{"w", "exec and noexec", tmpfs("/x:size=1m,exec,noexec")},
		{"w", "not absolute", tmpfs("x:size=1m")},

		{"w", "only a worker and its outlet join", of(func(s *types.ServiceConfig) { s.NetworkMode = "service:guard" })},
		{"w", "only a worker and its outlet join", of(func(s *types.ServiceConfig) { s.NetworkMode = "service:x" })},
		{"room", "only a worker and its outlet join", other("room", func(s *types.ServiceConfig) { s.NetworkMode = "service:w" })},
		{"w", "network_mode \"host\"", of(func(s *types.ServiceConfig) { s.NetworkMode = "host" })},
		{"w", "1 networks", of(func(s *types.ServiceConfig) {
			s.NetworkMode, s.Networks = "", map[string]*types.ServiceNetworkConfig{"default": nil}
		})},
		{"guard", "network_mode \"none\"", other("guard", func(s *types.ServiceConfig) { s.NetworkMode, s.Networks = "none", nil })},
		{"w", "sysctls", of(func(s *types.ServiceConfig) { s.Sysctls = types.Mapping{"net.x": "1"} })},
		{"room", "extra_hosts", other("room", func(s *types.ServiceConfig) { s.ExtraHosts = types.HostsList{"a b": {"127.0.0.1"}} })},
		{"room", "extra_hosts", other("room", func(s *types.ServiceConfig) { s.ExtraHosts = types.HostsList{"a": {"host-gateway"}} })},
		{"room", "not one word", other("room", func(s *types.ServiceConfig) { s.DNS = types.StringList{"127.0.0.1\nnameserver 1.1.1.1"} })},
		{"guard", "dns settings", other("guard", func(s *types.ServiceConfig) { s.DNS = types.StringList{"127.0.0.1"} })},

		{"w", "guard alone", of(func(s *types.ServiceConfig) {
			s.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1", Target: 80, Published: "8080"}}
		})},
		{"guard", "(B10)", other("guard", func(s *types.ServiceConfig) { s.Ports = []types.ServicePortConfig{{Target: 80, Published: "8080"}} })},
		{"guard", "only tcp", other("guard", func(s *types.ServiceConfig) {
			s.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1", Target: 80, Published: "8080", Protocol: "udp"}}
		})},
		{"guard", "not one port", other("guard", func(s *types.ServiceConfig) {
			s.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1", Target: 80, Published: "8080-8090"}}
		})},

		{"w", "no no-new-privileges", of(func(s *types.ServiceConfig) { s.SecurityOpt = []string{"seccomp:./seccomp.json"} })},
		{"w", "\"no-new-privileges:false\"", of(func(s *types.ServiceConfig) { s.SecurityOpt = []string{"no-new-privileges:false", "seccomp:x"} })},
		{"w", "no seccomp profile", of(func(s *types.ServiceConfig) { s.SecurityOpt = []string{"no-new-privileges:true"} })},
		{"w", "\"seccomp:unconfined\"", of(func(s *types.ServiceConfig) { s.SecurityOpt = append(s.SecurityOpt, "seccomp:unconfined") })},
		{"w", "apparmor", of(func(s *types.ServiceConfig) { s.SecurityOpt = append(s.SecurityOpt, "apparmor=unconfined") })},
		{"w", "(B6)", of(func(s *types.ServiceConfig) { s.Ipc = "host" })},
		{"w", "(B1)", of(func(s *types.ServiceConfig) { s.CapDrop = nil })},
		{"w", "(B1)", of(func(s *types.ServiceConfig) { s.CapAdd = []string{"NET_ADMIN"} })},
		{"w", "(B5)", of(func(s *types.ServiceConfig) { s.MemLimit = 0 })},
		{"w", "(B5)", of(func(s *types.ServiceConfig) { s.CPUS = 0 })},
		{"w", "(B5)", of(func(s *types.ServiceConfig) { s.PidsLimit = -1 })},
		{"w", "(B5)", of(func(s *types.ServiceConfig) { s.MemSwapLimit = -1 })},
		{"w", "ulimit", of(func(s *types.ServiceConfig) {
			s.Ulimits = map[string]*types.UlimitsConfig{"nofile": {Soft: 5, Hard: 4}}
		})},
		{"w", "logging driver", of(func(s *types.ServiceConfig) { s.Logging = &types.LoggingConfig{Driver: "syslog"} })},
		{"w", "logging option", of(func(s *types.ServiceConfig) { s.Logging = &types.LoggingConfig{Options: types.Options{"tag": "x"}} })},
		{"w", "is not valid", of(func(s *types.ServiceConfig) {
			s.Logging = &types.LoggingConfig{Options: types.Options{"max-size": "-1"}}
		})},
	} {
		_, err := translate(project(tt.change), tt.service, plain(t))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%d: %q: %v", i, tt.want, err)
		}
	}
	if _, err := translate(project(nil), "w", plain(t)); err != nil {
		t.Error(err)
	}
}

// plain is a machine with an image that has an account or two.
func plain(t *testing.T) machine {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/:/bin/sh\n# comment\nbroken\nuser:x:1000:1001::/:/bin/sh\ntoor:x:0:5::/:\nodd:x:-1:1::/:\n1234:x:77:77::/:\n",
		"group":  "root:x:0:\nwheel:x:10:user\nodd:x:x:\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return machine{
		volumes: "/state/volumes", tools: "/cache/init", filter: []byte("filter"),
		image: func(string) (workerImage, error) { return workerImage{id: "sha256:w", dir: dir}, nil },
		real: func(p string) (string, error) {
			if p == "/gone" {
				return "", errors.New("it is gone")
			}
			return p, nil
		},
	}
}

func TestTranslateUser(t *testing.T) {
	for user, want := range map[string][2]uint32{
		"user": {1000, 1001}, "user:wheel": {1000, 10}, "user:7": {1000, 7}, "5:wheel": {5, 10}, "1000": {1000, 1001}, "2000:3000": {2000, 3000}, "1234": {1234, 77},
	} {
		s, err := translate(project(func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = user }), "w", plain(t))
		if err != nil || s.Process.UID != want[0] || s.Process.GID != want[1] {
			t.Errorf("%s: %v %+v", user, err, s)
		}
	}
	for user, want := range map[string]string{
		"toor": "as root", "root": "as root", "nobody": "no user", "odd": "the uid", "user:x": "no group", "user:odd": "no group", "2000": "as root",
	} {
		if _, err := translate(project(func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = user }), "w", plain(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", user, err)
		}
	}
	// A link of the image leads nowhere outside of it.
	m := plain(t)
	i, _ := m.image("")
	if err := errors.Join(os.Remove(i.dir+"/etc/passwd"), os.Symlink("/etc/passwd", i.dir+"/etc/passwd")); err != nil {
		t.Fatal(err)
	}
	if _, err := translate(project(func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = "daemon" }), "w", m); err == nil || !strings.Contains(err.Error(), "escapes") {
		t.Error(err)
	}
}

// Without root there is one user; who else is wanted is refused by name (B4).
func TestTranslateRootless(t *testing.T) {
	m := plain(t)
	m.rootless, m.uid, m.gid, m.firstPort, m.files = true, 1000, 1000, 1024, 4096
	d := project(other("guard", func(s *types.ServiceConfig) {
		s.Tmpfs = types.StringList{"/run/guard:size=1m,uid=65532,gid=65532"}
		s.Ports = []types.ServicePortConfig{{HostIP: "::1", Target: 20000, Published: "8080"}}
	}))
	for service, want := range map[string][2]uint32{"w": {1000, 1000}, "room": {1000, 1000}, "guard": {1000, 1000}} {
		s, err := translate(d, service, m)
		if err != nil || s.Process.UID != want[0] || s.Process.GID != want[1] {
			t.Fatalf("%s: %v %+v", service, err, s)
		}
		switch service {
		case "room":
			if !slices.Equal(s.Process.Args, []string{"/workshop-init", "room", "--guard-uid", "1000"}) {
				t.Error(s.Process.Args)
			}
		case "guard":
			i := slices.IndexFunc(s.Mounts, func(m spec.Mount) bool { return m.Target == "/run/guard" })
			if s.Mounts[i].UID != 1000 || s.Mounts[i].GID != 1000 || !reflect.DeepEqual(s.Ports, []spec.Port{{Address: "[::1]:8080", Target: 20000}}) {
				t.Errorf("%+v", s)
			}
		}
	}
	for want, change := range map[string]func(*types.ServiceConfig, *compose.Compiled){
		"only the caller's user": func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = "1001:1000" },
		"4096": func(s *types.ServiceConfig, _ *compose.Compiled) {
			s.Ulimits = map[string]*types.UlimitsConfig{"nofile": {Single: 5000}}
		},
	} {
		_, err := translate(project(change), "w", m)
		if refused, ok := errors.AsType[*engine.RefusedError](err); !ok || !strings.Contains(err.Error(), want) || refused.Do == "" {
			t.Errorf("%s: %v", want, err)
		}
	}
	d = project(other("guard", func(s *types.ServiceConfig) {
		s.Ports = []types.ServicePortConfig{{HostIP: "127.0.0.1", Target: 20000, Published: "80"}}
	}))
	if _, err := translate(d, "guard", m); err == nil || !strings.Contains(err.Error(), "only root") {
		t.Error(err)
	}
}

// A project whose images aren't there yet can be judged before.
func TestTranslatePending(t *testing.T) {
	m := plain(t)
	m.image = func(string) (workerImage, error) { return workerImage{pending: true}, nil }
	if _, err := translate(project(func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = "node" }), "w", m); err != nil {
		t.Error(err)
	}
	if _, err := translate(project(func(s *types.ServiceConfig, _ *compose.Compiled) { s.User = "0:0" }), "w", m); err == nil {
		t.Error("root was let through")
	}
}

func FuzzTmpfs(f *testing.F) {
	f.Add("/tmp:rw,exec,nosuid,nodev,size=512m,mode=1777,uid=1000,gid=1000")
	f.Add("/x:size=18446744073709551615g")
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parseTmpfs(line)
		if err == nil && (m.Size <= 0 || m.Mode&^0o1777 != 0 || m.Target == "" || m.Target[0] != '/') {
			t.Errorf("%q: %+v", line, m)
		}
	})
}

func FuzzAccounts(f *testing.F) {
	f.Add("root:x:0:0::/:/bin/sh\n#\n::::\nx")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		_ = readAccounts(strings.NewReader(text), func(fields []string) bool { n++; return n < 10 })
	})
}

// B7: a source that was looked at is taken as it was then. Whoever can put a
// symbolic link into its path since chooses no other.
func TestLookedAt(t *testing.T) {
	for source, refused := range map[string]bool{"/work/p/in": true, "/work/p/in/.git": true, "/work/p/in2": false} {
		d := project(func(s *types.ServiceConfig, c *compose.Compiled) {
			c.Facts.Sources = map[string]compose.SourceFacts{"./in": {Exists: true, Dir: true, Real: "/work/p/in"}}
			s.Volumes = []types.ServiceVolumeConfig{{Type: types.VolumeTypeBind, Source: source, Target: "/in", ReadOnly: true}}
		})
		m := plain(t)
		if _, err := translate(d, "w", m); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		m.real = func(p string) (string, error) { return strings.Replace(p, "/work/p/in", "/home/worker/.ssh", 1), nil }
		if _, err := translate(d, "w", m); (err != nil && strings.Contains(err.Error(), "leads to /home/worker/.ssh")) != refused {
			t.Errorf("%s: %v", source, err)
		}
	}
}
