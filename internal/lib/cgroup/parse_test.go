package cgroup

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
)

const hybrid = `25 1 254:0 / / rw,relatime - ext4 /dev/root rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/a /sys/fs/cgroup/mem\040ory ro,nosuid - cgroup cgroup rw,memory,release_agent=/x
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup systemd rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
42 31 0:38 /
43 31 0:38 / relative rw - cgroup2 cgroup2 rw
`

func TestParseMounts(t *testing.T) {
	got := parseMounts(hybrid)
	want := []mount{
		{false, "/", "/sys/fs/cgroup/cpu,cpuacct", []string{"cpu", "cpuacct"}, false},
		{false, "/docker/a", "/sys/fs/cgroup/mem ory", []string{"memory"}, true},
		{false, "/", "/sys/fs/cgroup/systemd", []string{"name=systemd"}, false},
		{true, "/", "/sys/fs/cgroup/unified", nil, false},
	}
	if !slices.EqualFunc(got, want, func(a, b mount) bool {
		return a.v2 == b.v2 && a.root == b.root && a.point == b.point && a.readOnly == b.readOnly && slices.Equal(a.controllers, b.controllers)
	}) {
		t.Errorf("%+v", got)
	}
}

func TestParseSelf(t *testing.T) {
	v2, v1 := parseSelf("9:name=systemd:/\n4:memory:/a:b\n1:cpu,cpuacct:/\n0::/user.slice/x\nnonsense\n5:pids:relative\n")
	if want := map[string]string{"name=systemd": "/", "memory": "/a:b", "cpu": "/", "cpuacct": "/"}; v2 != "/user.slice/x" || !maps.Equal(v1, want) {
		t.Errorf("%q %v", v2, v1)
	}
	if v2, v1 := parseSelf(""); v2 != "" || len(v1) > 0 {
		t.Errorf("of nothing: %q %v", v2, v1)
	}
}

func TestDirOf(t *testing.T) {
	for _, c := range []struct {
		root, group, dir string
		ok               bool
	}{
		{"/", "/", "/m", true},
		{"/", "/a/b", "/m/a/b", true},
		{"/a", "/a", "/m", true},
		{"/a", "/a/b", "/m/b", true},
		{"/a", "/ab", "", false},
		{"/a", "/", "", false},
		{"/", "/../x", "", false},         // moved out of the cgroup namespace
		{"/../..", "/", "", false},        // mounted in a namespace above
		{"/", "/a/../../b", "/m/b", true}, // stays below the mount point
	} {
		dir, ok := mount{root: c.root, point: "/m"}.dirOf(c.group)
		if ok != c.ok || ok && dir != c.dir {
			t.Errorf("%s in %s: %q %v", c.group, c.root, dir, ok)
		}
	}
}

func TestValidName(t *testing.T) {
	for _, name := range []string{"a", "demo-worker_1", "9", strings.Repeat("a", 200)} {
		if err := ValidName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "/a", "-a", "memory.max", "cgroup.procs", "a\n", "a b", "ä", strings.Repeat("a", 201)} {
		if ValidName(name) == nil {
			t.Errorf("%q", name)
		}
	}
}

func TestSwapAndFields(t *testing.T) {
	if hasSwap("") || hasSwap("Filename\tType\n") || !hasSwap("Filename\tType\n/dev/sda2 partition 1 0 -2\n") {
		t.Error("swap")
	}
	if n, ok := field("low 0\noom_kill_group 7\noom_kill 3\n", "oom_kill"); n != 3 || !ok {
		t.Error(n, ok)
	}
	if n, ok := field("oom_kill x\n", "oom_kill"); n != 0 || ok {
		t.Error(n, ok)
	}
}

func FuzzMountinfo(f *testing.F) {
	f.Add(hybrid, "/docker/a/b")
	f.Add("1 2 3:4 /\\057.. /\\1 rw - cgroup c rw,\\,=", "/..")
	f.Fuzz(func(t *testing.T, text, group string) {
		for _, m := range parseMounts(text) {
			if !path.IsAbs(m.point) || m.v2 && len(m.controllers) > 0 {
				t.Fatalf("%+v", m)
			}
			point := path.Clean(m.point)
			if dir, ok := m.dirOf(group); ok && dir != point && point != "/" && !strings.HasPrefix(dir, point+"/") {
				t.Fatalf("%q is above %q", dir, m.point)
			}
		}
	})
}

func FuzzSelfCgroup(f *testing.F) {
	f.Add("4:memory:/a:b\n1:cpu,cpuacct:/\n0::/user.slice/x\n")
	f.Fuzz(func(t *testing.T, text string) {
		v2, v1 := parseSelf(text)
		if v2 != "" && !path.IsAbs(v2) {
			t.Fatal(v2)
		}
		for c, group := range v1 {
			if c == "" || !path.IsAbs(group) {
				t.Fatal(c, group)
			}
		}
	})
}
