package hostfirewall

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// without is a directory of iptables' extensions that lacks some: to iptables it is what
// a kernel without the module is.
func without(t *testing.T, missing ...string) string {
	t.Helper()
	all, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err != nil || len(all) == 0 {
		t.Skipf("skipped: extensions of iptables are elsewhere: %v", err)
	}
	dir := t.TempDir()
	for _, file := range all {
		lacks := false
		for _, m := range missing {
			lacks = lacks || filepath.Base(file) == m
		}
		if !lacks {
			if err := os.Symlink(file, filepath.Join(dir, filepath.Base(file))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return "XTABLES_LIBDIR=" + dir
}

func TestNothingHalfApplied(t *testing.T) {
	for _, f := range flavours[:2] {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, f.multi)
			l.sh(l.machine, docker)
			text, err := Export(IPTables, exported())
			if err != nil {
				t.Fatal(err)
			}
			before := l.saved(IPTables)
			out, err := l.load(IPTables, text, without(t, "libxt_owner.so"))
			if err == nil || strings.Count(out, "workshop: error: ") != 1 || !strings.Contains(out, "nothing was changed") || l.saved(IPTables) != before {
				t.Errorf("without a match: %v\n%s", err, out)
			}
			// Without a namespace to try it in, what was loaded is taken back.
			blind := strings.ReplaceAll(text, "unshare --net true", "false")
			out, err = l.load(IPTables, blind, without(t, "libipt_REJECT.so"))
			if err == nil || strings.Count(out, "workshop: error: ") != 1 || !strings.Contains(out, "nothing is left") || l.saved(IPTables) != before {
				t.Errorf("without a target of IPv4 alone: %v\n%s%s", err, out, l.saved(IPTables))
			}
			last := len(text) - len("main\n")
			for cut := 0; cut < last+997; cut += 997 {
				cut := min(cut, last)
				if _, err := l.load(IPTables, text[:cut]); l.saved(IPTables) != before {
					t.Fatalf("a text of %d bytes changes the tables (%v)", cut, err)
				}
			}
			out, err = l.load(IPTables, text, "PATH="+t.TempDir()+":/nonexistent")
			if err == nil || l.saved(IPTables) != before {
				t.Errorf("without programs: %v\n%s", err, out)
			}
		})
	}
}

// Rules of an earlier export that the next has none of leave no chain and no jump, and a
// chain of Docker's that came later gets the jump.
func TestFewerRules(t *testing.T) {
	for _, f := range flavours[:2] {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, f.multi)
			apply := func(r *Rules) string {
				t.Helper()
				text, err := Export(IPTables, r)
				if err != nil {
					t.Fatal(err)
				}
				if out, err := l.load(IPTables, text); err != nil || out != "" {
					t.Fatalf("%v: %s", err, out)
				}
				return l.saved(IPTables)
			}
			all := apply(exported())
			if !strings.Contains(all, "-A FORWARD -j WORKSHOP-1000-FORWARD\n") || l.dials(l.neighbour, 0, "198.51.100.10:443") {
				t.Errorf("without Docker's chain:\n%s", all)
			}
			l.sh(l.machine, docker)
			all = apply(exported())
			if strings.Contains(all, "-A FORWARD -j WORKSHOP") || strings.Count(all, "-A DOCKER-USER -j WORKSHOP-1000-FORWARD\n") != 2 {
				t.Errorf("with Docker's chain:\n%s", all)
			}
			few := apply(&Rules{UID: 1000, Ports: []Port{{8080, "a port"}}})
			if strings.Contains(few, "WORKSHOP-1000-FORWARD") || strings.Contains(few, "OUTPUT -j") || strings.Count(few, "-A INPUT -j WORKSHOP-1000-INPUT\n") != 2 {
				t.Errorf("ports alone:\n%s", few)
			}
			// Another user's stay.
			other := sample()
			other.UID, other.Programs = 1001, nil
			apply(other)
			if out, err := l.load(IPTables, Remove(IPTables, 1000)); err != nil || out != "" {
				t.Fatalf("%v: %s", err, out)
			}
			if left := l.saved(IPTables); strings.Contains(left, "WORKSHOP-1000-") || !strings.Contains(left, "-A DOCKER-USER -j WORKSHOP-1001-FORWARD\n") {
				t.Errorf("removed:\n%s", left)
			}
		})
	}
}

// A guard without an address of one family reaches nothing by it, and nothing reaches it.
func TestPacketsOfOneFamily(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, f.multi)
			for _, without4 := range []bool{true, false} {
				r := exported()
				b := &r.Bridges[0]
				if without4 {
					b.Guard4 = netip.Addr{}
				} else {
					b.Guard6 = netip.Addr{}
				}
				text, err := Export(f.tool, r)
				if err != nil {
					t.Fatal(err)
				}
				if out, err := l.load(f.tool, text); err != nil || out != "" {
					t.Fatalf("%v: %s", err, out)
				}
				for to, want := range map[string]bool{"198.51.100.10:443": !without4, "10.20.0.5:5432": !without4, "[2001:db8:1::10]:443": without4, "[fd12::5]:443": without4} {
					if got := l.dials(l.guard, 0, to); got != want {
						t.Errorf("without IPv4 %v: %s is open: got %v, want %v", without4, to, got, want)
					}
				}
				for to, want := range map[string]bool{"10.213.1.2:20001": !without4, "[2001:db8:9::2]:20001": without4} {
					if got := l.dials(l.elsewhere, 0, to); got != want {
						t.Errorf("without IPv4 %v: from elsewhere %s is open: got %v, want %v", without4, to, got, want)
					}
				}
			}
		})
	}
}

// The guards that are known by a control group.
func TestPacketsOfAGroup(t *testing.T) {
	base := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cgroup.procs"); err == nil {
			if _, err := os.Stat(dir + "/cgroup.controllers"); err == nil {
				base = dir
			}
		}
	}
	if base == "" || os.Geteuid() != 0 {
		t.Skip("skipped: no control groups of version 2, or no root")
	}
	name := "workshop-hostfirewall-test"
	dir := base + "/" + name + "/workshop"
	for _, d := range []string{filepath.Dir(dir), dir, dir + "/guard"} {
		if err := os.Mkdir(d, 0o755); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Remove(d) })
	}
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t, f.multi)
			r := exported()
			r.Programs[0].UID, r.Programs[0].Cgroup = 0, "/"+name+"/workshop"
			text, err := Export(f.tool, r)
			if err != nil {
				t.Fatal(err)
			}
			if f.tool == NFTables && base != "/sys/fs/cgroup" { // where nft looks for groups
				text = "exec unshare --mount sh -eu -c 'mount -t cgroup2 none /sys/fs/cgroup; nft -f -' <<'END'\n" + text + "END\n"
			}
			load := l.load
			if f.tool == NFTables && base != "/sys/fs/cgroup" {
				load = func(_ Tool, text string, env ...string) (string, error) { return l.load(IPTables, text, env...) } // a script
			}
			if out, err := load(f.tool, text); err != nil || out != "" {
				t.Fatalf("%v: %s", err, out)
			}
			for _, x := range []struct {
				group, host, port string
				open              bool
			}{
				{dir + "/guard", "198.51.100.10", "443", true},
				{dir + "/guard", "10.20.0.5", "22", true},
				{dir + "/guard", "10.99.0.5", "443", false},
				{dir + "/guard", "198.18.0.1", "443", false},
				{base, "10.99.0.5", "443", true},
			} {
				_, err := l.try(l.machine, "echo $$ >"+x.group+"/cgroup.procs; exec timeout 1 bash -c 'exec 3<>/dev/tcp/"+x.host+"/"+x.port+"'")
				if (err == nil) != x.open {
					t.Errorf("from %s to %s:%s: %v", x.group, x.host, x.port, err)
				}
			}
		})
	}
}
