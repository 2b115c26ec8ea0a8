package docker

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/go-connections/nat"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
)

const storedBase = "docker-20.10.24"

// What was recorded of an engine is what was asked of it.
func TestStoredAsRecorded(t *testing.T) {
	for name, r := range recordings(t) {
		for service, c := range r.Containers {
			for _, d := range stored(c.sent(), c.Inspected, r.info()) {
				t.Errorf("%s: %s: %s", name, service, d)
			}
		}
	}
}

// alter is a container of a recording, which an engine stored otherwise.
type alter struct {
	service string
	change  func(*container.InspectResponse)
	want    engine.Difference
}

func one(change func(*container.HostConfig), promise, field, asked, found string) alter {
	return alter{"one", func(c *container.InspectResponse) { change(c.HostConfig) }, engine.Difference{Promise: promise, Field: field, Asked: asked, Found: found}}
}

func oneConfig(change func(*container.Config), promise, field, asked, found string) alter {
	return alter{"one", func(c *container.InspectResponse) { change(c.Config) }, engine.Difference{Promise: promise, Field: field, Asked: asked, Found: found}}
}

func (a alter) of(service string) alter { a.service = service; return a }

func ptr[T any](v T) *T { return &v }

const ownSeccomp = "seccomp=sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

// Every compared setting is found when an engine drops, changes or adds it.
var alters = []alter{
	one(func(h *container.HostConfig) { h.CapAdd = []string{"sys_admin"} }, "B1", "CapAdd", "", "CAP_SYS_ADMIN"),
	one(func(h *container.HostConfig) { h.CapAdd = nil }, "B1", "CapAdd", "CAP_NET_ADMIN, CAP_NET_BIND_SERVICE", "").of("room"),
	one(func(h *container.HostConfig) { h.CapDrop = nil }, "B1", "CapDrop", "ALL", ""),
	one(func(h *container.HostConfig) { h.Privileged = true }, "B2", "Privileged", "", "true"),
	one(func(h *container.HostConfig) { h.SecurityOpt = h.SecurityOpt[1:] }, "B2", "SecurityOpt", "no-new-privileges", ""),
	one(func(h *container.HostConfig) { h.SecurityOpt = h.SecurityOpt[:1] }, "B2", "SecurityOpt", ownSeccomp, ""),
	one(func(h *container.HostConfig) { h.SecurityOpt[1] = "seccomp=unconfined" }, "B2", "SecurityOpt", ownSeccomp, "seccomp=unconfined"),
	one(func(h *container.HostConfig) { h.SecurityOpt = append(h.SecurityOpt, "apparmor=unconfined") }, "B2", "SecurityOpt", "", "apparmor=unconfined"),
	one(func(h *container.HostConfig) { h.ReadonlyRootfs = false }, "B3", "ReadonlyRootfs", "true", ""),
	one(func(h *container.HostConfig) { h.Tmpfs["/tmp"] = "rw,exec,nosuid,nodev,mode=1777,uid=1000,gid=1000" }, "B3", "Tmpfs",
		"/tmp:exec,gid=1000,mode=1777,nodev,nosuid,rw,size=16m,uid=1000", "/tmp:exec,gid=1000,mode=1777,nodev,nosuid,rw,uid=1000"),
	one(func(h *container.HostConfig) { h.MaskedPaths = []string{} }, "B3", "MaskedPaths",
		"/proc/acpi, /proc/kcore, /proc/keys, /proc/latency_stats, /proc/sched_debug, /proc/scsi, /proc/timer_list, /proc/timer_stats, /sys/firmware", ""),
	one(func(h *container.HostConfig) { h.ReadonlyPaths = h.ReadonlyPaths[:4] }, "B3", "ReadonlyPaths", "/proc/sysrq-trigger", ""),
	oneConfig(func(c *container.Config) { c.User = "" }, "B4", "User", "1000:1000", ""),
	one(func(h *container.HostConfig) { h.GroupAdd = []string{"0"} }, "B4", "GroupAdd", "", "0"),
	one(func(h *container.HostConfig) { h.Memory = 0 }, "B5", "Memory", "67108864", ""),
	one(func(h *container.HostConfig) { h.MemoryReservation = 1 << 20 }, "B5", "MemoryReservation", "", "1048576"),
	one(func(h *container.HostConfig) { h.MemorySwap = -1 }, "B5", "MemorySwap", "67108864", "-1"),
	one(func(h *container.HostConfig) { h.NanoCPUs = 0 }, "B5", "NanoCpus", "500000000", ""),
	one(func(h *container.HostConfig) { h.NanoCPUs, h.CPUQuota = 0, 60_000 }, "B5", "NanoCpus", "500000000", "600000000"),
	one(func(h *container.HostConfig) { h.NanoCPUs, h.CPUQuota, h.CPUPeriod = 0, 60_000, 10_000 }, "B5", "NanoCpus", "500000000", "6000000000"),
	one(func(h *container.HostConfig) { h.CPURealtimeRuntime = 950_000 }, "B5", "CpuRealtimeRuntime", "", "950000"),
	one(func(h *container.HostConfig) { h.PidsLimit = nil }, "B5", "PidsLimit", "64", ""),
	one(func(h *container.HostConfig) { h.PidsLimit = ptr(int64(-1)) }, "B5", "PidsLimit", "64", ""),
	one(func(h *container.HostConfig) { h.Ulimits = h.Ulimits[:1] }, "B5", "Ulimits", "sigpending=1024:1024", ""),
	one(func(h *container.HostConfig) { h.ShmSize = 64 << 20 }, "B5", "ShmSize", "1048576", "67108864"),
	one(func(h *container.HostConfig) { h.OomScoreAdj = -999 }, "B5", "OomScoreAdj", "", "-999"),
	one(func(h *container.HostConfig) { h.OomKillDisable = ptr(true) }, "B5", "OomKillDisable", "", "true"),
	one(func(h *container.HostConfig) { h.CgroupParent = "/other" }, "B5", "CgroupParent", "", "/other"),
	one(func(h *container.HostConfig) { delete(h.LogConfig.Config, "max-size") }, "B5", "LogConfig", "max-size=10m", ""),
	one(func(h *container.HostConfig) { h.LogConfig.Type = "journald" }, "B5", "LogConfig.Type", "json-file", "journald"),
	one(func(h *container.HostConfig) { h.PidMode = "host" }, "B6", "PidMode", "", "host"),
	one(func(h *container.HostConfig) { h.IpcMode = "host" }, "B6", "IpcMode", "private", "host"),
	one(func(h *container.HostConfig) { h.UTSMode = "host" }, "B6", "UTSMode", "", "host"),
	one(func(h *container.HostConfig) { h.CgroupnsMode = "host" }, "B6", "CgroupnsMode", "private", "host"),
	one(func(h *container.HostConfig) { h.UsernsMode = "host" }, "B6", "UsernsMode", "", "host"),
	one(func(h *container.HostConfig) { h.Cgroup = "container:other" }, "B6", "Cgroup", "", "container:other"),
	one(func(h *container.HostConfig) {
		h.Devices = []container.DeviceMapping{{PathOnHost: "/dev/kvm", PathInContainer: "/dev/kvm", CgroupPermissions: "rwm"}}
	}, "B6", "Devices", "", "{PathOnHost:/dev/kvm PathInContainer:/dev/kvm CgroupPermissions:rwm}"),
	one(func(h *container.HostConfig) {
		h.DeviceRequests = []container.DeviceRequest{{Driver: "nvidia", Count: -1}}
	}, "B6", "DeviceRequests", "",
		"{Driver:nvidia Count:-1 DeviceIDs:[] Capabilities:[] Options:map[]}"),
	one(func(h *container.HostConfig) { h.DeviceCgroupRules = []string{"c 10:* rwm"} }, "B6", "DeviceCgroupRules", "", "c 10:* rwm"),
	one(func(h *container.HostConfig) { h.Sysctls = nil }, "B6", "Sysctls", "net.ipv4.ip_unprivileged_port_start=1024", "").of("room"),
	oneConfig(func(c *container.Config) { c.WorkingDir = "/proc/self/fd/8" }, "B6", "WorkingDir", "/workspace", "/proc/self/fd/8"),
	one(func(h *container.HostConfig) { h.Binds = []string{"/:/host"} }, "B7", "Binds", "", "/:/host"),
	one(func(h *container.HostConfig) { h.Mounts[at(h, "/etc/passwd")].ReadOnly = false }, "B7", "Mounts",
		"bind /work/p/.run/passwd at /etc/passwd ro rprivate non-recursive", "bind /work/p/.run/passwd at /etc/passwd rw rprivate non-recursive"),
	one(func(h *container.HostConfig) { h.Mounts[at(h, "/output")].BindOptions.NonRecursive = false }, "B7", "Mounts",
		"bind /work/p/output at /output rw rprivate non-recursive", "bind /work/p/output at /output rw rprivate"),
	one(func(h *container.HostConfig) { h.Mounts[at(h, "/output")].BindOptions.Propagation = "rshared" }, "B7", "Mounts",
		"bind /work/p/output at /output rw rprivate non-recursive", "bind /work/p/output at /output rw rshared non-recursive"),
	one(func(h *container.HostConfig) { h.Mounts[at(h, "/output")].Source = "/etc" }, "B7", "Mounts",
		"bind /work/p/output at /output rw rprivate non-recursive", "bind /etc at /output rw rprivate non-recursive"),
	one(func(h *container.HostConfig) {
		h.Mounts = append(h.Mounts, mount.Mount{Type: "tmpfs", Target: "/x", TmpfsOptions: &mount.TmpfsOptions{Mode: 0o777, Options: [][]string{{"exec"}}}})
	}, "B7", "Mounts", "", `tmpfs at /x rw size=0,mode=777 [["exec"]]`),
	{"one", func(c *container.InspectResponse) {
		c.Mounts = append(c.Mounts, container.MountPoint{Type: "volume", Name: "0123", Source: "/data/0123", Destination: "/var/cache", RW: true})
	}, engine.Difference{Promise: "B7", Field: "mounts in use", Found: "volume 0123 at /var/cache rw"}},
	one(func(h *container.HostConfig) { h.VolumesFrom = []string{"other"} }, "B7", "VolumesFrom", "", "other"),
	one(func(h *container.HostConfig) { h.PortBindings["20000/tcp"][0].HostIP = "0.0.0.0" }, "B10", "PortBindings",
		"127.0.0.1:18080->20000/tcp", "0.0.0.0:18080->20000/tcp").of("guard"),
	one(func(h *container.HostConfig) { h.PortBindings = nat.PortMap{"22/tcp": {{HostPort: "22"}}} }, "B10", "PortBindings", "", ":22->22/tcp"),
	one(func(h *container.HostConfig) { h.PublishAllPorts = true }, "B10", "PublishAllPorts", "", "true"),
	{"room", func(c *container.InspectResponse) { c.Path, c.Args = "/bin/sh", []string{"-c", "x"} }, engine.Difference{
		Promise: "B12", Field: "Entrypoint", Asked: `["/workshop-init" "room" "--name" "room"]`, Found: `["/bin/sh" "-c" "x"]`}},
	one(func(h *container.HostConfig) { h.Init = ptr(true) }, "B12", "Init", "", "true"),
	oneConfig(func(c *container.Config) { c.Healthcheck.Test = []string{"CMD", "/x"} }, "B12", "Healthcheck", `["NONE"]`, `["CMD" "/x"]`),
	one(func(h *container.HostConfig) { h.NetworkMode = "bridge" }, "B20", "NetworkMode", "container:ROOM", "bridge"),
	{"one", func(c *container.InspectResponse) {
		c.NetworkSettings.Networks = map[string]*network.EndpointSettings{"bridge": {}}
	}, engine.Difference{Promise: "B20", Field: "networks", Found: "bridge"}},
	{"guard", func(c *container.InspectResponse) { c.NetworkSettings = nil }, engine.Difference{Promise: "B20", Field: "networks", Asked: "p_default"}},
	one(func(h *container.HostConfig) { h.Links = []string{"/other:/p-one-1/other"} }, "B20", "Links", "", "/other:/p-one-1/other"),
	one(func(h *container.HostConfig) { h.DNS = []string{"198.51.100.1"} }, "B23", "Dns", "127.0.0.1", "198.51.100.1").of("room"),
	one(func(h *container.HostConfig) { h.DNSOptions = nil }, "B23", "DnsOptions", "attempts:1, timeout:2", "").of("room"),
	one(func(h *container.HostConfig) { h.DNSSearch = nil }, "B23", "DnsSearch", ".", "").of("room"),
	one(func(h *container.HostConfig) { h.ExtraHosts = nil }, "B23", "ExtraHosts", "workshop:127.0.0.1", "").of("room"),
	one(func(h *container.HostConfig) { h.RestartPolicy.Name = "always" }, "B29", "RestartPolicy", "", "always:0"),
	one(func(h *container.HostConfig) { h.RestartPolicy.Name = "" }, "B29", "RestartPolicy", "unless-stopped:0", "").of("guard"),
	one(func(h *container.HostConfig) { h.AutoRemove = true }, "B29", "AutoRemove", "", "true"),
	one(func(h *container.HostConfig) { h.Runtime = "other" }, "B30", "Runtime", "runc", "other"),
	one(func(h *container.HostConfig) { h.Annotations = map[string]string{"dev.gvisor.x": "y"} }, "B30", "Annotations", "", "dev.gvisor.x=y"),
	oneConfig(func(c *container.Config) { c.Tty = true }, "B43", "Tty", "", "true"),
	oneConfig(func(c *container.Config) { c.OpenStdin = true }, "B43", "OpenStdin", "", "true"),
	oneConfig(func(c *container.Config) { c.Env = append(c.Env, "HOST_TOKEN=secret") }, "B45", "Env", "", "HOST_TOKEN"),
	oneConfig(func(c *container.Config) { c.Env[slices.Index(c.Env, "NAME=one")] = "NAME=other" }, "B45", "Env", "NAME", "NAME"),
	oneConfig(func(c *container.Config) { c.Image = "other" }, "B46", "Image", "sha256:e582a6e7dea24040d6f962a0c468e2be96df8dc2c25c01b2162c3864f4e5c035", "other"),
	oneConfig(func(c *container.Config) { delete(c.Labels, engine.LabelProject) }, "", "Labels", "com.docker.compose.project=p", ""),
}

func at(h *container.HostConfig, target string) int {
	return slices.IndexFunc(h.Mounts, func(m mount.Mount) bool { return m.Target == target })
}

func TestStoredFindsEach(t *testing.T) {
	found := map[string]bool{}
	for _, a := range alters {
		t.Run(a.want.Field+" "+a.want.Found, func(t *testing.T) {
			r := recordings(t)[storedBase]
			c := r.Containers[a.service]
			a.change(c.Inspected)
			if diff := cmp.Diff([]engine.Difference{a.want}, stored(c.sent(), c.Inspected, r.info())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
		found[a.want.Field] = true
	}
	for _, row := range storedRows {
		if !found[row.field] {
			t.Errorf("%s: no case", row.field)
		}
	}
}

// More of these is stricter, or the engine's and the image's default.
func TestStoredAccepts(t *testing.T) {
	for name, change := range map[string]func(*recorded, *engine.Info){
		"more masked paths": func(c *recorded, _ *engine.Info) {
			c.Inspected.HostConfig.MaskedPaths = append(c.Inspected.HostConfig.MaskedPaths, "/proc/x")
		},
		"the engine's default ulimits": func(c *recorded, _ *engine.Info) {
			c.Inspected.HostConfig.Ulimits = append(c.Inspected.HostConfig.Ulimits, &container.Ulimit{Name: "core"})
		},
		"the engine's options of logs": func(c *recorded, _ *engine.Info) { c.Inspected.HostConfig.LogConfig.Config["compress"] = "true" },
		"the image's labels":           func(c *recorded, _ *engine.Info) { c.Inspected.Config.Labels["org.example"] = "x" },
		"the image's environment": func(c *recorded, _ *engine.Info) {
			c.ImageEnv = []string{"PATH=/bin", "NAME=image"}
			c.Inspected.Config.Env = append(c.Inspected.Config.Env, "PATH=/bin")
		},
		"the image's working directory": func(c *recorded, _ *engine.Info) { c.Config.WorkingDir = "" },
		"the engine's size of /dev/shm": func(c *recorded, _ *engine.Info) { c.Host.ShmSize = 0 },
		"cpus as a quota": func(c *recorded, _ *engine.Info) {
			c.Inspected.HostConfig.NanoCPUs, c.Inspected.HostConfig.CPUQuota = 0, 50_000
		},
		"a default runtime": func(c *recorded, i *engine.Info) { i.DefaultRuntime, c.Inspected.HostConfig.Runtime = "crun", "crun" },
		"paths as asked": func(c *recorded, _ *engine.Info) {
			c.Host.MaskedPaths, c.Inspected.HostConfig.MaskedPaths = []string{"/proc/x"}, []string{"/proc/x"}
		},
		"limits that weren't asked for, with --without-limits": func(c *recorded, _ *engine.Info) {
			sent := c.sent()
			sent.withoutLimits(engine.Limits{Memory: true})
			h := c.Inspected.HostConfig
			h.MemorySwap, h.NanoCPUs, h.PidsLimit = 2*h.Memory, 0, nil // moby: daemon_unix.go, adaptContainerSettings
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordings(t)[storedBase]
			c, info := r.Containers["one"], r.info()
			change(&c, &info)
			for _, d := range stored(c.sent(), c.Inspected, info) {
				t.Error(d)
			}
		})
	}
}
