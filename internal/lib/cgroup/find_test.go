//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree is a directory that looks like a v2 hierarchy, with these groups.
func tree(t *testing.T, uid int, groups ...string) string {
	t.Helper()
	top := t.TempDir()
	for _, g := range groups {
		name, controllers, _ := strings.Cut(g, " ")
		dir := filepath.Join(top, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.procs": "", "cgroup.subtree_control": ""} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if os.Getuid() == 0 {
			if err := os.Chown(dir, uid, uid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return top
}

func onV2(top string) string { return "41 31 0:38 / " + top + " rw - cgroup2 cgroup2 rw\n" }

// TestFindV2: which group is chosen. In these trees a group is usable when its
// files exist.
func TestFindV2(t *testing.T) {
	uid := os.Getuid()
	if uid == 0 {
		uid = ordinary
	}
	const all = "cpu memory pids io"
	manager := fmt.Sprintf("user.slice/user@%d.service", uid)
	for _, c := range []struct {
		name   string
		uid    int
		groups []string
		own    string
		want   string // "-": none
		says   string // of what is missing
	}{
		{"root of the machine", 0, []string{". " + all, "user.slice " + all}, "/user.slice", ".", ""},
		{"delegated group", uid, []string{"u " + all}, "/u", "u", ""},
		{"after the own processes were moved", uid, []string{"u " + all, "u/workshop-callers"}, "/u/workshop-callers", "u", ""},
		{"supervisor beside its groups", uid, []string{"u " + all, "u/workshop " + all}, "/u/workshop", "u", ""},
		{"a terminal of the user manager", uid, []string{manager + " " + all, manager + "/app.scope " + all}, "/" + manager + "/app.scope", manager, ""},
		{"a login session", uid, []string{manager + " " + all}, "/user.slice/session-3.scope", "-", "doesn't exist"},
		{"no cpu", uid, []string{"u memory pids"}, "/u", "u", "cpu: "},
		{"more of them higher up", uid, []string{"u " + all, "u/sub memory"}, "/u/sub", "u", ""},
		{"outside of the namespace", uid, []string{". " + all}, "/../x", "-", "is outside"},
		{"none", uid, []string{". " + all}, "", "-", "is outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := tree(t, uid, c.groups...)
			self := ""
			if c.own != "" {
				self = "0::" + c.own + "\n"
			}
			p := find(onV2(top), self, "", c.uid)
			got := strings.TrimPrefix(p.String(), top)
			if want := filepath.Join(top, c.want); c.want == "-" && got != "" || c.want != "-" && p.String() != want {
				t.Errorf("%q, not %q", p.String(), c.want)
			}
			err := p.Require()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "--without-limits")) {
				t.Error(err)
			}
		})
	}
}

func TestFindAdvice(t *testing.T) {
	uid := os.Getuid()
	if uid == 0 {
		uid = ordinary
	}
	session := tree(t, uid, fmt.Sprintf("user.slice/user-%d.slice/user@%d.service memory pids", uid, uid))
	u := tree(t, uid, "u memory pids cpu")
	for _, c := range []struct{ name, mounts, self, swaps, says string }{
		{"nothing mounted", "", "0::/\n", "", "mount -t cgroup2"},
		{"no group of v2", onV2("/nonexistent"), "0::/u\n", "", "cgroup.subtree_control && mkdir -p u"},
		{"systemd", onV2(session), "0::/user.slice/session-3.scope\n", "", "systemd-run --user --scope -p Delegate=yes"},
		{"read-only", strings.Replace(onV2("/nonexistent"), " rw ", " ro ", 1), "0::/u\n", "", "read-only"},
		{"v1", "32 31 0:29 / /nonexistent rw - cgroup c rw,memory\n", "2:memory:/\n", "", "doesn't exist"},
		{"v1 without the own group", "32 31 0:29 / /m rw - cgroup c rw,memory\n", "0::/\n", "", "/proc/self/cgroup doesn't name"},
		{"v1 controllers aren't looked for on v2", "32 31 0:29 / /nonexistent rw - cgroup c rw,memory\n" + onV2(u), "2:memory:/\n0::/u\n", "", "memory: /nonexistent"},
	} {
		err := find(c.mounts, c.self, c.swaps, uid).Require()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Swap that isn't accounted for: refused only where there is some.
	if err := os.WriteFile(filepath.Join(u, "u/memory.max"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := find(onV2(u), "0::/u\n", "", uid).Require(); err != nil {
		t.Error(err)
	}
	p := find(onV2(u), "0::/u\n", "Filename\n/dev/sda2\n", uid)
	if l := p.Can(); l.Swap || !l.Memory || !l.CPU || !l.PIDs || !strings.Contains(p.Require().Error(), "swapaccount=1") {
		t.Errorf("%+v", l)
	}
	if _, err := p.New("x", Limit{MemoryBytes: 1 << 20}); err == nil || exists(filepath.Join(u, "u", groupsDir)) {
		t.Error("made with swap:", err)
	}
}

func TestQuota(t *testing.T) {
	for cpus, want := range map[float64][2]int64{1: {100000, 100000}, 0.1: {10000, 100000}, 2.5: {250000, 100000}, 0.005: {5000, 1000000}, 0.0000001: {1000, 1000000}} {
		if q, p := quota(cpus); q != want[0] || p != want[1] {
			t.Errorf("%v: %d of %d", cpus, q, p)
		}
	}
}

// TestFindInScope: where a scope of the user's systemd would be, whatever group this
// process is in.
func TestFindInScope(t *testing.T) {
	const uid = 1234
	manager := "user.slice/user-1234.slice/user@1234.service"
	for own, want := range map[string]string{
		"/user.slice/user-1234.slice/session-3.scope":               "0::/" + manager,
		"/user.slice/user-1234.slice/user@1234.service/app.slice/x": "0::/" + manager,
		"/system.slice/cron.service":                                "0::/" + manager,
		"/":                                                         "0::/" + manager,
		"/machine/x/user.slice/user-1234.slice/session-3.scope": "0::/machine/x/" + manager,
		"/user.slice/user-12345.slice/session-3.scope":          "0::/" + manager,
	} {
		if got := inScope("0::"+own+"\n1:memory:/m\n", uid); !strings.HasPrefix(got, want+"/app.slice/") || !strings.Contains(got, "1:memory:/m\n") {
			t.Errorf("%s: got %q, want %q", own, got, want)
		}
	}
	user := os.Getuid()
	if user == 0 {
		user = ordinary
	}
	manager = fmt.Sprintf("user.slice/user-%d.slice/user@%d.service", user, user)
	top := tree(t, user, manager+" cpu memory pids")
	self := "0::/user.slice/session-3.scope\n"
	if p := find(onV2(top), self, "", user); p.Require() == nil {
		t.Error("a login session's groups can be limited")
	}
	if p := find(onV2(top), inScope(self, user), "", user); p.Require() != nil || p.String() != filepath.Join(top, manager) {
		t.Errorf("got %v, %v", p, p.Require())
	}
}

// TestFindHere: only the own group is used, also where one above has more.
func TestFindHere(t *testing.T) {
	uid := os.Getuid()
	if uid == 0 {
		uid = ordinary
	}
	manager := fmt.Sprintf("user@%d.service", uid)
	top := tree(t, uid, manager+" cpu memory pids", manager+"/x.scope memory pids", manager+"/x.scope/workshop-callers")
	for _, own := range []string{"/x.scope", "/x.scope/workshop-callers"} {
		p := findAt(onV2(top), "0::/"+manager+own+"\n", "", uid, here)
		if p.String() != filepath.Join(top, manager, "x.scope") || p.Require() == nil {
			t.Errorf("%s: got %v, %v", own, p, p.Require())
		}
	}
}
