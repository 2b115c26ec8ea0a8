package container

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func good() *spec.Container {
	return &spec.Container{
		Version: spec.Version, Name: "n", Process: spec.Process{Args: []string{"/x"}, Cwd: "/"}, Network: spec.Network{Mode: spec.NetNone},
		Seccomp: make([]byte, 8), Mounts: []spec.Mount{{Type: spec.Tmpfs, Target: "/a/b", Size: 1}},
	}
}

func TestCheck(t *testing.T) {
	if err := Check(good()); err != nil {
		t.Fatal(err)
	}
	mount := func(m spec.Mount) func(*spec.Container) {
		return func(c *spec.Container) { c.Mounts = append(c.Mounts, m) }
	}
	for want, change := range map[string]func(*spec.Container){
		"spec version 7":                 func(c *spec.Container) { c.Version = 7 },
		"the program []":                 func(c *spec.Container) { c.Process.Args = nil },
		`the program ["x"]`:              func(c *spec.Container) { c.Process.Args[0] = "x" },
		`the program ["/x/../y"]`:        func(c *spec.Container) { c.Process.Args[0] = "/x/../y" },
		"the working directory":          func(c *spec.Container) { c.Process.Cwd = "" },
		"zero byte":                      func(c *spec.Container) { c.Process.Env = []string{"A=\x00"} },
		"not a variable":                 func(c *spec.Container) { c.Process.Env = []string{"A"} },
		"longer than 64":                 func(c *spec.Container) { c.Hostname = strings.Repeat("x", 65) },
		"CAP_SYS_ADMIN":                  func(c *spec.Container) { c.Capabilities = []string{"CAP_SYS_ADMIN"} },
		"0 bytes is not valid":           func(c *spec.Container) { c.Seccomp = nil },
		"9 bytes is not valid":           func(c *spec.Container) { c.Seccomp = make([]byte, 9) },
		"can't have the device \"mem\"":  func(c *spec.Container) { c.Role, c.Devices = spec.Worker, []string{"mem"} },
		"a room can't have the device":   func(c *spec.Container) { c.Role, c.Devices = spec.Room, []string{"kvm"} },
		"oom_score_adj":                  func(c *spec.Container) { c.OOMScore = 1001 },
		"below the root":                 mount(spec.Mount{Type: spec.Tmpfs, Target: "/", Size: 1}),
		"which every container gets":     mount(spec.Mount{Type: spec.Tmpfs, Target: "/proc/x", Size: 1}),
		"the target /dev is in":          mount(spec.Mount{Type: spec.Tmpfs, Target: "/dev", Size: 1}),
		"would cover the earlier":        mount(spec.Mount{Type: spec.Tmpfs, Target: "/a", Size: 1}),
		"has no size":                    mount(spec.Mount{Type: spec.Tmpfs, Target: "/t"}),
		"mode 4755 is not valid":         mount(spec.Mount{Type: spec.Tmpfs, Target: "/t", Size: 1, Mode: 0o4755}),
		"must not have a source":         mount(spec.Mount{Type: spec.Tmpfs, Target: "/t", Size: 1, Source: "/x"}),
		"unknown type":                   mount(spec.Mount{Type: "proc", Target: "/t"}),
		"the machine's root":             mount(spec.Mount{Type: spec.Bind, Target: "/t", Source: "/"}),
		"not an absolute path":           mount(spec.Mount{Type: spec.Bind, Target: "/t", Source: "/x/../y"}),
		"a size, a mode":                 mount(spec.Mount{Type: spec.Bind, Target: "/t", Source: "/x", Size: 1}),
		"the root":                       func(c *spec.Container) { c.Root.Dir = "x" },
		"the file /f":                    func(c *spec.Container) { c.Files = []spec.File{{Path: "/f", Mode: 0o4755}} },
		"/sys/f is in":                   func(c *spec.Container) { c.Files = []spec.File{{Path: "/sys/f"}} },
		"network mode":                   func(c *spec.Container) { c.Network.Mode = "" },
		"only a room may":                func(c *spec.Container) { c.Network.AnyIP = true },
		"only a room ":                   func(c *spec.Container) { c.Network = spec.Network{Mode: spec.NetRoom, AnyIP: true} },
		"a new network namespace":        func(c *spec.Container) { c.Network.Mode, c.Sysctls = spec.NetJoin, map[string]string{"net.a": "1"} },
		"must not have capabilities":     func(c *spec.Container) { c.Network.Mode, c.Capabilities = spec.NetHost, []string{"CAP_NET_ADMIN"} },
		`"kernel.x" does not belong`:     func(c *spec.Container) { c.Sysctls = map[string]string{"kernel.x": "1"} },
		`"net.../x" does not belong`:     func(c *spec.Container) { c.Sysctls = map[string]string{"net.../x": "1"} },
		"value \"\" is not valid":        func(c *spec.Container) { c.Sysctls = map[string]string{"net.x": ""} },
		"/dev/shm: size -1 is not valid": func(c *spec.Container) { c.Limits.Shm = -1 },
		`the limit "x"`:                  func(c *spec.Container) { c.Rlimits = []spec.Rlimit{{Name: "x"}} },
		"exceeds the hard":               func(c *spec.Container) { c.Rlimits = []spec.Rlimit{{Name: "nofile", Soft: 2, Hard: 1}} },
	} {
		c := good()
		change(c)
		if err := Check(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if Check(nil) == nil {
		t.Error("nil is a container")
	}
}

func TestOrder(t *testing.T) {
	b, err := json.Marshal(order{Container: good(), Cgroup: []CgroupMount{{"cgroup2", "", "/sys/fs/cgroup"}}})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := readOrder(bytes.NewReader(b)); err != nil || o.Container.Name != "n" {
		t.Fatal(o, err)
	}
	for want, text := range map[string]string{
		"can't be read": "{",
		"no container":  "{}",
		"unknown field": strings.Replace(string(b), `"name"`, `"nome"`, 1),
		"trailing data": string(b) + "{}",
		"not below":     strings.Replace(string(b), "/sys/fs/cgroup", "/sys/fs", 1),
		"descriptor 3":  strings.Replace(string(b), `"cgroup"`, `"null":[3],"cgroup"`, 1),
		"not a control": strings.Replace(string(b), "cgroup2", "proc", 1),
	} {
		if _, err := parseOrder([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := readOrder(strings.NewReader(strings.Repeat(" ", maxOrder+1))); err == nil || !strings.Contains(err.Error(), "longer") {
		t.Error(err)
	}
	if _, err := readOrder(iotest.ErrReader(io.ErrClosedPipe)); err != io.ErrClosedPipe {
		t.Error(err)
	}
}

func FuzzOrder(f *testing.F) {
	b, err := json.Marshal(order{Container: good()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := parseOrder(b)
		if err != nil {
			return
		}
		for _, m := range o.Container.Mounts {
			if strings.Contains(m.Target, "..") && strings.Contains(m.Target+"/", "/../") || !strings.HasPrefix(m.Target, "/") {
				t.Errorf("%+v", m)
			}
		}
		for name := range o.Container.Sysctls {
			p, err := sysctlPath(name)
			if err != nil || strings.Contains("/"+p+"/", "/../") || !strings.HasPrefix(p, "net/") {
				t.Errorf("%q %q", name, p)
			}
		}
	})
}
