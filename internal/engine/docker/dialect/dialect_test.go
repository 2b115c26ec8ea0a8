package dialect

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	return Facts{
		Flavour: f, Local: true, DefaultRuntime: "runc", CgroupVersion: "2", Limits: engine.Limits{Memory: true, Swap: true, CPU: true, PIDs: true, Seccomp: true},
		UID: 1000, GID: 1000, Processes: 32768, Files: 20000, Dir: "/run/user/1000/workshop/p-1/podman",
	}
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

// TestRefusals: what is refused before anything is started, by the machine.
func TestRefusals(t *testing.T) {
	docker, podman := facts(engine.FlavourDocker), facts(engine.FlavourPodman)
	rootless := podman
	rootless.Rootless, rootless.IDs, rootless.Systemd, rootless.NetworkHelper = true, 65537, true, "/usr/bin/slirp4netns"
	for flavour, facts := range map[string]Facts{"docker": docker, "podman": podman, "podman-rootless": rootless} {
		var got strings.Builder
		for _, tt := range []struct {
			name   string
			change func(*Facts)
		}{
			{"nothing lacks", func(*Facts) {}},
			{"elsewhere", func(f *Facts) { f.Local = false }},
			{"SELinux", func(f *Facts) { f.SELinux = true }},
			{"one id", func(f *Facts) { f.IDs = 1 }},
			{"no network helper", func(f *Facts) { f.NetworkHelper = "" }},
			{"ends at logout", func(f *Facts) { f.EndsAtLogout = true }},
			{"cgroups of version 1", func(f *Facts) { f.CgroupVersion = "1" }},
			{"cgroups of version 1, accepted", func(f *Facts) { f.CgroupVersion, f.CgroupV1 = "1", true }},
			{"cgroups of unknown version", func(f *Facts) { f.CgroupVersion = "" }},
			{"no limits", func(f *Facts) { f.Limits = engine.Limits{} }},
			{"no limits, version 1", func(f *Facts) { f.CgroupVersion, f.Limits = "1", engine.Limits{} }},
			{"no limit of cpu", func(f *Facts) { f.Limits.CPU = false }},
			{"no limit of pids, without systemd", func(f *Facts) { f.Limits.PIDs, f.Systemd = false, false }},
		} {
			f := facts
			tt.change(&f)
			fmt.Fprintf(&got, "%s\n", tt.name)
			if err := Refuse(f); err != nil {
				fmt.Fprintf(&got, "\trefused: %v\n", err)
			}
			for _, x := range Findings(f) {
				if x.Held {
					continue
				}
				if x.Accepted {
					got.WriteString("\taccepted: ")
				} else {
					got.WriteByte('\t')
				}
				fmt.Fprintf(&got, "%s %s: %s\n\t\t%s\n", x.Promise, x.Name, x.Meaning, x.Do)
			}
		}
		if why := NoCompose(facts); why != "" {
			fmt.Fprintf(&got, "plain Compose\n\t%s\n", why)
		}
		golden(t, "refusals-"+flavour, got.String())
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
