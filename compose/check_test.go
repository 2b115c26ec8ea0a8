package compose

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
	toolfile "github.com/llmdo/workshop/workshop/worker"
)

// goodProject has everything that the check looks at: two rooms, a worker
// without one, ports, a copy, a secret, protected directories, image: host.
func goodProject(t testing.TB) *Compiled {
	t.Helper()
	w := sample(t, 3)
	w.Workers[1].Container.Network.OwnRoom = val(true)
	w.Workers[2].Container.Network = workshop.Network{Mode: val(firewall.None)}
	w.Workers[2].Container.Image = val(workshop.HostImage)
	k := &w.Workers[0].Container
	k.Ports = []workshop.Port{{Host: val("127.0.0.1"), Published: val(uint16(8080)), Target: val(uint16(8080)), At: at(30)}}
	k.Mounts = append(slices.Clone(k.Mounts),
		workshop.Mount{Name: "data", Source: val("./data"), Target: val("/data"), Exclude: []string{".env"}, At: at(31)})
	k.Secrets = []workshop.Secret{{Name: "token", Env: "TOKEN", At: at(32)}}
	k.Caches = []workshop.Cache{{Name: "npm", Target: val("/caches/npm"), PruneAbove: val(workshop.Size(1 << 30)), At: at(33)}}
	w.Workers[2].Container.Caches = slices.Clone(k.Caches)
	w.MCP = []workshop.MCPServer{{Name: "issues", Command: []string{"issue-server", "--read-only"}}}
	w.Workers[0].Definition.Tools = []toolfile.Tool{{Name: tool.ReadFile}, {Name: tool.Shell, Pattern: "git:*"}, {Name: "mcp__issues"}}
	f := sampleFacts()
	f.Sources["./data"] = SourceFacts{Exists: true, Dir: true, Real: "/work/project/data"}
	f.Protected = map[string][]Protected{"./output": {{".git", GitDir}, {".git/hooks", GitHooks}, {"sub/deep/.claude", ProtectedDir}}}
	f.SecretFiles = map[string]string{"token": "/run/user/1000/workshop/x/token"}
	f.HostPaths = []string{"/etc/ssl/certs", "/usr"}
	return withFacts(t, compiled(t, w), f)
}

func TestGoodProjectHasNoViolation(t *testing.T) {
	c := goodProject(t)
	for _, v := range Check(c) {
		t.Error(v)
	}
	for _, v := range Check(c.base) {
		t.Error("before facts: ", v)
	}
	if got := sortedKeys(c.Rulesets); !slices.Equal(got, []string{"room-worker-0", "room-worker-1"}) {
		t.Errorf("rooms = %v", got)
	}
}

const (
	worker = "worker-0"
	lonely = "worker-2"
	room   = "room-worker-0"
)

// Each promise that a project can say is broken once; the check must name it.
func TestCheckFindsEachViolation(t *testing.T) {
	on := func(name string, change func(*types.ServiceConfig)) func(*Compiled) {
		return func(c *Compiled) {
			s := c.Project.Services[name]
			s.Volumes = slices.Clone(s.Volumes)
			for i := range s.Volumes {
				if b := s.Volumes[i].Bind; b != nil {
					s.Volumes[i].Bind = ptr(*b)
				}
			}
			s.CapAdd, s.CapDrop, s.SecurityOpt = slices.Clone(s.CapAdd), slices.Clone(s.CapDrop), slices.Clone(s.SecurityOpt)
			s.Tmpfs, s.Entrypoint, s.Ports = slices.Clone(s.Tmpfs), slices.Clone(s.Entrypoint), slices.Clone(s.Ports)
			s.Environment = maps.Clone(s.Environment)
			s.Logging = ptr(*s.Logging)
			change(&s)
			c.Project.Services[name] = s
		}
	}
	mount := func(name string, v types.ServiceVolumeConfig) func(*Compiled) {
		return on(name, func(s *types.ServiceConfig) { s.Volumes = append(s.Volumes, v) })
	}
	remount := func(name, target string, change func(*types.ServiceVolumeConfig)) func(*Compiled) {
		return on(name, func(s *types.ServiceConfig) {
			for i := range s.Volumes {
				if s.Volumes[i].Target == target {
					change(&s.Volumes[i])
					return
				}
			}
			t.Fatalf("no mount at %s", target)
		})
	}
	unmount := func(name, target string) func(*Compiled) {
		return on(name, func(s *types.ServiceConfig) {
			s.Volumes = slices.DeleteFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == target })
		})
	}
	profile := func(old, new string) func(*Compiled) {
		return func(c *Compiled) {
			changed := bytes.ReplaceAll(c.Seccomp, []byte(old), []byte(new))
			if bytes.Equal(changed, c.Seccomp) {
				t.Fatalf("%q is not in the profile", old)
			}
			c.Seccomp = changed
		}
	}
	grant := func(change func(*tool.Grant)) func(*Compiled) {
		return on(worker, func(s *types.ServiceConfig) {
			var g tool.Grant
			last := &s.Entrypoint[len(s.Entrypoint)-1]
			if err := json.Unmarshal([]byte(*last), &g); err != nil {
				t.Fatal(err)
			}
			change(&g)
			*last = grantJSON(g)
		})
	}
	writable := func(key, target string) types.ServiceVolumeConfig {
		v := volume(key, target)
		v.ReadOnly = false
		return v
	}
	volumeNamed := func(key, name string) func(*Compiled) {
		return func(c *Compiled) {
			c.Project.Volumes = maps.Clone(c.Project.Volumes)
			v := c.Project.Volumes[key]
			v.Name = name
			c.Project.Volumes[key] = v
		}
	}
	tests := []struct {
		promise, name string
		breakIt       func(*Compiled)
	}{
		{"B1", "worker with a capability", on(worker, func(s *types.ServiceConfig) { s.CapAdd = []string{"NET_RAW"} })},
		{"B1", "worker keeps the defaults", on(worker, func(s *types.ServiceConfig) { s.CapDrop = nil })},
		{"B1", "guard with a capability", on(GuardService, func(s *types.ServiceConfig) { s.CapAdd = []string{"NET_ADMIN"} })},
		{"B1", "room with a third capability", on(room, func(s *types.ServiceConfig) { s.CapAdd = append(s.CapAdd, "SYS_ADMIN") })},
		{"B30", "guard with another kernel", on(GuardService, func(s *types.ServiceConfig) { s.Runtime = "runsc" })},
		{"B30", "room with another kernel", on(room, func(s *types.ServiceConfig) { s.Runtime = "runsc" })},
		{"B2", "privileged", on(worker, func(s *types.ServiceConfig) { s.Privileged = true })},
		{"B2", "new privileges", on(room, func(s *types.ServiceConfig) { s.SecurityOpt = s.SecurityOpt[1:] })},
		{"B2", "unconfined", on(worker, func(s *types.ServiceConfig) { s.SecurityOpt[1] = "seccomp:unconfined" })},
		{"B2", "apparmor off", on(worker, func(s *types.ServiceConfig) { s.SecurityOpt = append(s.SecurityOpt, "apparmor:unconfined") })},
		{"B2", "profile that allows by default", profile(`"defaultAction": "SCMP_ACT_ERRNO"`, `"defaultAction": "SCMP_ACT_ALLOW"`)},
		{"B2", "profile with clone3", profile(`"accept",`, `"clone3",`)},
		{"B2", "profile with any socket", profile(`"accept",`, `"socket",`)},
		{"B2", "profile like Docker's", profile(`"valueTwo": 41,`, `"valueTwo": 40,`)},
		{"B2", "profile for i386 too", profile(`"subArchitectures": []`, `"subArchitectures": ["SCMP_ARCH_X86"]`)},
		{"B2", "no profile", func(c *Compiled) { c.Seccomp = nil }},
		{"B3", "writable root", on(worker, func(s *types.ServiceConfig) { s.ReadOnly = false })},
		{"B3", "tmpfs without size", on(worker, func(s *types.ServiceConfig) { s.Tmpfs[0] = "/tmp:nosuid,nodev" })},
		{"B3", "tmpfs of size 0", on(worker, func(s *types.ServiceConfig) { s.Tmpfs[0] = "/tmp:nosuid,nodev,size=0" })},
		{"B3", "undeclared rw", remount(worker, "/workspace/src", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B3", "writable passwd", remount(worker, "/etc/passwd", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B3", "writable host programs", remount(lonely, "/usr", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B3", "cache of another worker", remount(worker, "/caches/npm", func(v *types.ServiceVolumeConfig) { v.Source = "cache-" + lonely + ".npm" })},
		{"B3", "cache that is shared", mount("worker-1", writable("cache-"+worker+".npm", "/caches/npm"))},
		{"B3", "cache at another place", remount(worker, "/caches/npm", func(v *types.ServiceVolumeConfig) { v.Target = "/x" })},
		{"B3", "cache that no grant names", volumeNamed("cache-"+worker+".npm", "")},
		{"B3", "cache of another project", volumeNamed("cache-"+worker+".npm", "other_cache-"+worker+".npm-0123456789abcdef")},
		{"B3", "cache with a short name", volumeNamed("cache-"+worker+".npm", "code-review-workshop_cache-"+worker+".npm-")},
		{"B9", "writable volume that is no cache", mount(worker, writable(SocketsVolume, "/x"))},
		{"B3", "two mounts on one target", mount(worker, bind("/work/project/other", "/workspace/src", true))},
		{"B3", "room with a workspace", mount(room, bind("/work/project/src", "/src", true))},
		{"B3", "guard with a workspace", mount(GuardService, bind("/work/project/src", "/src", true))},
		{"B4", "root", on(worker, func(s *types.ServiceConfig) { s.User = "0:0" })},
		{"B4", "no user", on(worker, func(s *types.ServiceConfig) { s.User = "" })},
		{"B60", "any number of open files", on(worker, func(s *types.ServiceConfig) { s.Ulimits = nil })},
		{"B60", "as many open files as the guard", on(worker, func(s *types.ServiceConfig) { s.Ulimits["nofile"].Hard = guardFiles })},
		{"B60", "any number of queued signals", on(worker, func(s *types.ServiceConfig) { delete(s.Ulimits, "sigpending") })},
		{"B60", "a ulimit of its own", on(worker, func(s *types.ServiceConfig) { s.Ulimits["core"] = &types.UlimitsConfig{Single: 1} })},
		{"B60", "the guard's", on(worker, func(s *types.ServiceConfig) { s.User = "65532:1000" })},
		{"B60", "the outlet's group", on(worker, func(s *types.ServiceConfig) { s.User = "1000:65531" })},
		{"B4", "group root", on(worker, func(s *types.ServiceConfig) { s.User = "1000:0" })},
		{"B4", "user by name", on(worker, func(s *types.ServiceConfig) { s.User = "root" })},
		{"B4", "guard as root", on(GuardService, func(s *types.ServiceConfig) { s.User = "0:0" })},
		{"B4", "supplementary group", on(worker, func(s *types.ServiceConfig) { s.GroupAdd = []string{"docker"} })},
		{"B5", "no memory limit", on(worker, func(s *types.ServiceConfig) { s.MemLimit, s.MemSwapLimit = 0, 0 })},
		{"B5", "swap", on(worker, func(s *types.ServiceConfig) { s.MemSwapLimit = -1 })},
		{"B5", "no cpu limit", on(room, func(s *types.ServiceConfig) { s.CPUS = 0 })},
		{"B5", "no pids limit", on(GuardService, func(s *types.ServiceConfig) { s.PidsLimit = -1 })},
		{"B5", "oom killer off", on(worker, func(s *types.ServiceConfig) { s.OomKillDisable = true })},
		{"B5", "the engine's own log", on(worker, func(s *types.ServiceConfig) { s.Logging = nil })},
		{"B5", "a log without a size", on(worker, func(s *types.ServiceConfig) { s.Logging.Options = types.Options{"max-file": "3", "max-size": "-1"} })},
		{"B5", "a log in one large file", on(GuardService, func(s *types.ServiceConfig) { s.Logging.Options = types.Options{"max-file": "3", "max-size": "1000m"} })},
		{"B5", "a log that is sent away", on(room, func(s *types.ServiceConfig) { s.Logging.Driver = "syslog" })},
		{"B5", "no shm limit", on(worker, func(s *types.ServiceConfig) { s.ShmSize = 0 })},
		{"B6", "host network", on(worker, func(s *types.ServiceConfig) { s.NetworkMode = "host" })},
		{"B6", "another container's network", on(lonely, func(s *types.ServiceConfig) { s.NetworkMode = "container:x" })},
		{"B6", "worker in the guard's namespace", on(worker, func(s *types.ServiceConfig) { s.NetworkMode = "service:guard" })},
		{"B6", "worker on a network", on(lonely, func(s *types.ServiceConfig) {
			s.NetworkMode, s.Networks = "", map[string]*types.ServiceNetworkConfig{"default": nil}
		})},
		{"B6", "room with a network", on(room, func(s *types.ServiceConfig) { s.NetworkMode = "bridge" })},
		{"B6", "guard on the host's network", on(GuardService, func(s *types.ServiceConfig) { s.NetworkMode, s.Networks = "host", nil })},
		{"B6", "host pid", on(worker, func(s *types.ServiceConfig) { s.Pid = "host" })},
		{"B6", "host ipc", on(worker, func(s *types.ServiceConfig) { s.Ipc = "host" })},
		{"B6", "host user namespace", on(worker, func(s *types.ServiceConfig) { s.UserNSMode = "host" })},
		{"B6", "device", on(worker, func(s *types.ServiceConfig) { s.Devices = []types.DeviceMapping{{Source: "/dev/kvm"}} })},
		{"B6", "engine's socket by name", mount(worker, bind("/work/project/docker.sock", "/docker.sock", true))},
		{"B6", "engine's socket by key", on(worker, func(s *types.ServiceConfig) { s.UseAPISocket = true })},
		{"B6", "kernel parameter", on(room, func(s *types.ServiceConfig) { s.Sysctls = types.Mapping{"net.ipv4.ip_forward": "1"} })},
		{"B6", "external network", func(c *Compiled) {
			c.Project.Networks = types.Networks{"default": {Driver: "bridge", External: true}}
		}},
		{"B6", "service that nobody compiled", func(c *Compiled) {
			s := c.Project.Services[worker]
			s.Name = "other"
			c.Project.Services["other"] = s
		}},
		{"B6", "room without rules", func(c *Compiled) { c.Rulesets = map[string]firewall.Ruleset{} }},
		{"B6", "key that nobody knows", on(worker, func(s *types.ServiceConfig) { s.CgroupParent, s.StorageOpt = "", map[string]string{"size": "1g"} })},
		{"B6", "deploy", on(worker, func(s *types.ServiceConfig) { s.Deploy = &types.DeployConfig{} })},
		{"B7", "whole file system", mount(worker, bind("/", "/host", true))},
		{"B7", "inside /etc", mount(worker, bind("/etc/ssh", "/x", true))},
		{"B7", "contains the home directory", mount(worker, bind("/home", "/x", true))},
		{"B7", "keys", mount(worker, bind("/home/user/.ssh/id_ed25519", "/x", true))},
		{"B7", "engine's data", mount(worker, bind("/var/lib/docker/volumes/x", "/x", true))},
		{"B7", "relative source", mount(worker, bind("../../x", "/x", true))},
		{"B7", "recursive", remount(worker, "/workspace/src", func(v *types.ServiceVolumeConfig) { v.Bind.Recursive = "" })},
		{"B7", "propagation", remount(worker, "/workspace/src", func(v *types.ServiceVolumeConfig) { v.Bind.Propagation = "rshared" })},
		{"B7", "source that is made", remount(worker, "/workspace/src", func(v *types.ServiceVolumeConfig) { v.Bind.CreateHostPath = true })},
		{"B7", "volume that is a directory of the host", func(c *Compiled) {
			c.Project.Volumes = maps.Clone(c.Project.Volumes)
			c.Project.Volumes[SocketsVolume] = types.VolumeConfig{DriverOpts: types.Options{"device": "/etc", "o": "bind"}}
		}},
		{"B7", "another project's volume", func(c *Compiled) {
			c.Project.Volumes = maps.Clone(c.Project.Volumes)
			c.Project.Volumes[SocketsVolume] = types.VolumeConfig{External: true, Name: "x"}
		}},
		{"B7", "volumes of another container", on(worker, func(s *types.ServiceConfig) { s.VolumesFrom = []string{"container:x"} })},
		{"B8", "git not held", unmount(worker, "/workspace/output/.git")},
		{"B8", "git writable, hooks too", remount(worker, "/workspace/output/.git", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B8", "claude writable", remount(worker, "/workspace/output/sub/deep/.claude", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B8", "directory above can be renamed", unmount(worker, "/workspace/output/sub")},
		{"B8", "held by another directory", remount(worker, "/workspace/output/.git", func(v *types.ServiceVolumeConfig) { v.Source = "/work/project/empty" })},
		{"B8", "protected directory mounted writable", remount(worker, "/workspace/output", func(v *types.ServiceVolumeConfig) { v.Source = "/work/project/.github/workflows" })},
		{"B9", "writable copy", remount(worker, "/data", func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B9", "volume filled from the image", remount(worker, "/data", func(v *types.ServiceVolumeConfig) { v.Volume = nil })},
		{"B9", "sockets in a worker", mount(worker, volume(SocketsVolume, "/s"))},
		{"B10", "every address", on(GuardService, func(s *types.ServiceConfig) { s.Ports[0].HostIP = "0.0.0.0" })},
		{"B10", "every IPv6 address", on(GuardService, func(s *types.ServiceConfig) { s.Ports[0].HostIP = "::" })},
		{"B10", "no address", on(GuardService, func(s *types.ServiceConfig) { s.Ports[0].HostIP = "" })},
		{"B10", "port nobody asked for", on(GuardService, func(s *types.ServiceConfig) { s.Ports[0].Target = 9999 })},
		{"B11", "another worker's secret", mount("worker-1", bind("/run/user/1000/workshop/x/token", SecretsDir+"/token", true))},
		{"B11", "caller's variable", on(worker, func(s *types.ServiceConfig) { s.Environment["TOKEN"] = nil })},
		{"B11", "env file", on(worker, func(s *types.ServiceConfig) { s.EnvFiles = []types.EnvFile{{Path: ".env"}} })},
		{"B11", "secret of Compose", func(c *Compiled) { c.Project.Secrets = types.Secrets{"x": {File: "x"}} }},
		{"B12", "the image's entrypoint", on(worker, func(s *types.ServiceConfig) { s.Entrypoint = nil })},
		{"B12", "a shell", on(worker, func(s *types.ServiceConfig) { s.Entrypoint[0] = "/bin/sh" })},
		{"B12", "a command", on(worker, func(s *types.ServiceConfig) { s.Command = []string{"x"} })},
		{"B12", "docker's init", on(worker, func(s *types.ServiceConfig) { s.Init = nil })},
		{"B12", "tools writable", remount(worker, InitDir, func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B12", "gate covered", mount(worker, bind("/work/project/src", InitPath, true))},
		{"B12", "gate covered by tmpfs", on(worker, func(s *types.ServiceConfig) { s.Tmpfs = append(s.Tmpfs, "/opt:nosuid,nodev,size=1m") })},
		{"B12", "hook", on(worker, func(s *types.ServiceConfig) { s.PostStart = []types.ServiceHook{{}} })},
		{"B12", "another worker's door", remount(worker, DialInDir, func(v *types.ServiceVolumeConfig) { v.Source = "/run/user/1000/workshop/x/door-worker-1" })},
		{"B12", "a door of the project", remount(worker, DialInDir, func(v *types.ServiceVolumeConfig) { v.Source = "/work/project/src" })},
		{"B12", "something in the door", mount(worker, bind("/work/project/src", DialInDir+"/x", true))},
		{"B12", "a volume as door", func(c *Compiled) {
			unmount(worker, DialInDir)(c)
			mount(worker, volume(ToolsVolume, DialInDir))(c)
		}},
		{"B12", "tmpfs over the door", on(worker, func(s *types.ServiceConfig) { s.Tmpfs = append(s.Tmpfs, "/run:nosuid,nodev,size=1m") })},
		{"B3", "writable door", remount(worker, DialInDir, func(v *types.ServiceVolumeConfig) { v.ReadOnly = false })},
		{"B41", "no word of the tools", on(worker, func(s *types.ServiceConfig) { s.Entrypoint = s.Entrypoint[:len(s.Entrypoint)-2] })},
		{"B41", "tools twice", on(worker, func(s *types.ServiceConfig) {
			s.Entrypoint = append(s.Entrypoint, s.Entrypoint[len(s.Entrypoint)-2:]...)
		})},
		{"B41", "tools in one word", on(worker, func(s *types.ServiceConfig) { s.Entrypoint = append(s.Entrypoint, "--tools={}") })},
		{"B41", "a tool more", grant(func(g *tool.Grant) { g.Tools = append(g.Tools, tool.Offer{Name: tool.WriteFile}) })},
		{"B41", "a tool without its limit", grant(func(g *tool.Grant) { g.Tools[1].Limit = "" })},
		{"B41", "another worker's tools", grant(func(g *tool.Grant) { g.Worker = lonely })},
		{"B41", "all the time of the world", grant(func(g *tool.Grant) { g.TimeoutMS = 1 << 40 })},
		{"B41", "an MCP server more", grant(func(g *tool.Grant) { g.MCP["x"] = tool.Server{Command: []string{"x"}} })},
		{"B41", "another program as MCP server", grant(func(g *tool.Grant) { g.MCP["issues"] = tool.Server{Command: []string{"sh"}} })},
		{"B41", "tools that nobody can read", on(worker, func(s *types.ServiceConfig) { s.Entrypoint[len(s.Entrypoint)-1] = "{" })},
		{"B12", "guard of another image", on(GuardService, func(s *types.ServiceConfig) { s.Image = "guard:latest" })},
	}
	for _, tt := range tests {
		t.Run(tt.promise+" "+tt.name, func(t *testing.T) {
			c := *goodProject(t)
			project := *c.Project
			project.Services = maps.Clone(project.Services)
			c.Project = &project
			tt.breakIt(&c)
			found := Check(&c)
			if !slices.ContainsFunc(found, func(v Violation) bool { return v.Promise == tt.promise }) {
				t.Errorf("not found; Check = %v", found)
			}
		})
	}
}

// Labels and names decide nothing: a worker that carries a room's does not
// become one.
func TestRolesAreNotLabels(t *testing.T) {
	c := goodProject(t)
	s := c.Project.Services[worker]
	s.CapAdd = []string{"NET_ADMIN", "NET_BIND_SERVICE"}
	s.Labels = types.Labels{LabelRole: "room"}
	c.Project.Services[worker] = s
	if v := Check(c); len(v) == 0 || !strings.HasPrefix(v[0].String(), "B1: service worker-0") {
		t.Errorf("Check = %v", v)
	}
}
