package dialect

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

var update = flag.Bool("update", false, "rewrite golden files")

var names = Names{Hosts: []string{"workshop:127.0.0.1"}, Servers: []string{"127.0.0.1"}, Search: []string{"."}, Options: []string{"timeout:2", "attempts:1"}}

// hardened is what the services of a workshop have in common.
func hardened(change func(*container.HostConfig)) *container.HostConfig {
	h := &container.HostConfig{
		CapDrop: []string{"ALL"}, ReadonlyRootfs: true, CgroupnsMode: "private",
		SecurityOpt: []string{"no-new-privileges=true", `seccomp={"defaultAction":"SCMP_ACT_ERRNO"}`},
	}
	change(h)
	return h
}

var creations = map[string]Creation{
	"room": {Service: "room", Role: compose.RoleRoom, Names: names, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode, h.CapAdd = "none", []string{"NET_ADMIN", "NET_BIND_SERVICE"}
		h.Mounts = []mount.Mount{{Type: mount.TypeVolume, Source: "p_sockets", Target: "/run/workshop"}}
	})},
	"guard": {Service: "guard", Role: compose.RoleGuard, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode = "p_default"
		h.Ulimits = []*units.Ulimit{{Name: "nofile", Soft: 16384, Hard: 16384}}
		h.Tmpfs = map[string]string{"/run/guard": "size=1m,mode=0700,uid=65532,gid=65532,noexec"}
	})},
	"worker": {Service: "coder", Role: compose.RoleWorker, User: "1000:1000", Names: names, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode, h.Runtime = "container:0123", "runc"
		h.Ulimits = []*units.Ulimit{{Name: "nofile", Soft: 4096, Hard: 4096}, {Name: "nproc", Soft: 7, Hard: 7}}
		h.Tmpfs = map[string]string{"/tmp": "size=64m,mode=1777", "/home/worker": "size=64m,mode=0755,uid=1000,gid=1000"}
		h.Mounts = []mount.Mount{
			{Type: mount.TypeBind, Source: "/work/src", Target: "/workspace/src", ReadOnly: true},
			{Type: mount.TypeTmpfs, Target: "/data", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: 64 << 20, Mode: 0o1777}},
			{Type: mount.TypeBind, Source: "/work/out", Target: "/var/tmp"},
		}
	})},
	"none": {Service: "coder", Role: compose.RoleWorker, User: "1000:1000", Names: names, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode = "none"
	})},
	"runtime": {Service: "coder", Role: compose.RoleWorker, User: "1000:1000", Names: names, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode, h.Runtime = "none", "runsc"
	})},
	"user": {Service: "coder", Role: compose.RoleWorker, User: "2000:2000", Names: names, Host: hardened(func(h *container.HostConfig) {
		h.NetworkMode = "none"
	})},
}

func facts(f engine.Flavour) Facts {
	return Facts{Flavour: f, Local: true, DefaultRuntime: "runc", CgroupVersion: "2", UID: 1000, GID: 1000, Processes: 32768, Files: 20000, Dir: "/run/user/1000/workshop/p-1/podman"}
}

// TestTranslate: a creation in each flavour's words, with the files that it names, or the
// refusal.
func TestTranslate(t *testing.T) {
	rootless := facts(engine.FlavourPodman)
	rootless.Rootless, rootless.CgroupVersion = true, "1"
	for flavour, facts := range map[string]Facts{"docker": facts(engine.FlavourDocker), "podman": facts(engine.FlavourPodman), "podman-rootless": rootless} {
		for name, c := range creations {
			t.Run(flavour+"/"+name, func(t *testing.T) {
				before := marshal(t, c)
				host, files, err := Translate(c, facts)
				got := marshal(t, map[string]any{"Host": host, "Files": files, "Refused": text(err)})
				if after := marshal(t, c); before != after {
					t.Errorf("the creation was changed (-before +after):\n%s", cmp.Diff(before, after))
				}
				if err != nil && !errors.As(err, new(*engine.RefusedError)) {
					t.Errorf("not a refusal: %v", err)
				}
				golden(t, flavour+"-"+name, got)
			})
		}
	}
}

// TestFindings: what is refused before anything is started, a line per promise.
func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		want   []string // of those that aren't held
	}{
		{"docker", func(f *Facts) { f.Flavour, f.Local, f.CgroupVersion = engine.FlavourDocker, false, "1" }, nil},
		{"podman", func(*Facts) {}, nil},
		{"elsewhere", func(f *Facts) { f.Local = false }, []string{"B2 seccomp-file"}},
		{"without root", func(f *Facts) { f.Rootless, f.IDs = true, 65537 }, nil},
		{"without root and ids", func(f *Facts) { f.Rootless, f.IDs = true, 1 }, []string{"B4 subordinate-ids"}},
		{"cgroups of version 1", func(f *Facts) { f.CgroupVersion = "1" }, []string{"B6 cgroup-names"}},
		{"cgroups of version 1, accepted", func(f *Facts) { f.CgroupVersion, f.CgroupV1 = "1", true }, []string{"B6 cgroup-names accepted"}},
		{"cgroups of unknown version", func(f *Facts) { f.CgroupVersion = "" }, []string{"B6 cgroup-names"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts(engine.FlavourPodman)
			tt.change(&f)
			var got []string
			for _, x := range Findings(f) {
				if x.Do == "" {
					t.Errorf("%s: nothing to do", x.Name)
				}
				if line := x.Promise + " " + x.Name; !x.Held && x.Accepted {
					got = append(got, line+" accepted")
				} else if !x.Held {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestRefuse: SELinux, by name.
func TestRefuse(t *testing.T) {
	f := facts(engine.FlavourPodman)
	if err := Refuse(f); err != nil {
		t.Error(err)
	}
	f.SELinux = true
	const want = "SELinux is enforced in podman's containers, and no workshop has run there yet: run on namespaces: `workshop --engine namespace up`"
	if got := text(Refuse(f)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Flavour = engine.FlavourDocker
	if err := Refuse(f); err != nil {
		t.Error(err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	// Fields that the client always sends, whether they are set or not, say nothing.
	var lines []string
	for line := range strings.Lines(got) {
		if trimmed := strings.TrimRight(line, ",\n"); !strings.HasSuffix(trimmed, ": null") && !strings.HasSuffix(trimmed, `: ""`) && !strings.HasSuffix(trimmed, ": 0") && !strings.HasSuffix(trimmed, ": false") {
			lines = append(lines, line)
		}
	}
	got = strings.Join(lines, "")
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
