package doctor

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A check that panics or hangs is an error of its own, and keeps no other from
// reporting.
func TestRun(t *testing.T) {
	never := make(chan struct{})
	defer close(never)
	fine := func(group string) Check {
		return Check{group, "fine", func(context.Context) []Finding { return []Finding{{group, "fine", OK, "all is well", ""}} }}
	}
	began := time.Now()
	r := Run(t.Context(), []Check{
		fine(Settings),
		{Disk, "hangs", func(context.Context) []Finding { <-never; return nil }},
		{Network, "panics", func(context.Context) []Finding { panic("broken") }},
		{State, "obeys", func(ctx context.Context) []Finding {
			<-ctx.Done()
			return []Finding{{State, "obeys", Warning, "late", ""}}
		}},
		fine(Engine),
	}, 200*time.Millisecond)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	var got []string
	for _, f := range r.Findings {
		text, _, _ := strings.Cut(f.Text, "\n")
		got = append(got, f.Group+" "+string(f.Level)+" "+text)
	}
	want := []string{
		"engine ok all is well", "network error the check failed: broken",
		"disk error the check didn't end within 200ms", "state warning late", "settings ok all is well",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if r.Level() != Error {
		t.Errorf("level %s", r.Level())
	}
}

func TestLevel(t *testing.T) {
	of := func(levels ...Level) (r Report) {
		for _, l := range levels {
			r.Findings = append(r.Findings, Finding{Level: l})
		}
		return r
	}
	for _, tt := range []struct {
		r    Report
		want Level
	}{{of(), OK}, {of(OK, Warning, OK), Warning}, {of(Warning, Error, OK), Error}} {
		if got := tt.r.Level(); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.r.Findings, got, tt.want)
		}
	}
}

func TestFileSystems(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fs    FileSystem
		level Level
		says  string
		do    string
	}{
		{"plenty", FileSystem{Free: 20 << 30, Inodes: -1, Type: "ext4"}, OK, "20GiB free on ext4", ""},
		{"unknown", FileSystem{Free: -1, Inodes: -1}, OK, "unknown", ""},
		{"little", FileSystem{Free: 500 << 20, Inodes: -1}, Warning, "500MiB left", "du -xh /d"},
		{"full", FileSystem{Free: 5 << 20, Inodes: -1, Type: "nfs"}, Error, "full", "du -xh /d"},
		{"no inodes", FileSystem{Free: 5 << 30, Inodes: 3}, Error, "3 files", "--inodes"},
		{"read-only", FileSystem{Free: 5 << 30, Inodes: -1, ReadOnly: true}, Error, "read-only", "export XDG_X="},
		{"noexec where programs are", FileSystem{Free: 5 << 30, Inodes: -1, NoExec: true, Execs: true}, Error, "noexec", "export XDG_X="},
		{"noexec elsewhere", FileSystem{Free: 5 << 30, Inodes: -1, NoExec: true}, OK, "", ""},
		{"nfs", FileSystem{Free: 5 << 30, Inodes: -1, Type: "nfs"}, Warning, "nfs, where locks and unix sockets may not work", "export XDG_X="},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fs.Dir, tt.fs.Variable = "/d", "XDG_X"
			f := tt.fs.finding()
			if f.Level != tt.level || !strings.Contains(f.Text, tt.says) || !strings.Contains(f.Do, tt.do) || (f.Do == "") != (tt.do == "") {
				t.Errorf("got %+v", f)
			}
		})
	}
	full := FileSystem{Dir: "/a", Device: 1, Free: 1, Inodes: -1}
	same, other := full, full
	same.Dir, other.Dir, other.Device = "/b", "/c", 2
	if got := Disks([]FileSystem{full, same, other}); len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	known, err := FileSystem{Dir: t.TempDir() + "/not/there"}.Look()
	if err != nil || known.Free == 0 {
		t.Errorf("got %+v, %v", known, err)
	}
}

func TestModules(t *testing.T) {
	levels := func(m Modules) (out []string) {
		for _, f := range m.Findings() {
			out = append(out, f.Name+" "+string(f.Level))
		}
		return out
	}
	for _, tt := range []struct {
		m    Modules
		want []string
	}{
		{Modules{}, []string{"apparmor ok", "selinux ok", "landlock ok"}},
		{Modules{AppArmor: "Y", RestrictsNS: "1", Landlock: 4}, []string{"apparmor ok", "selinux ok", "landlock ok"}},
		{Modules{SELinux: "1", EngineLabels: true}, []string{"apparmor ok", "selinux warning", "landlock ok"}},
		{Modules{SELinux: "1"}, []string{"apparmor ok", "selinux ok", "landlock ok"}},
		{Modules{SELinux: "0", EngineLabels: true}, []string{"apparmor ok", "selinux ok", "landlock ok"}},
	} {
		if got := levels(tt.m); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v, want %v", tt.m, got, tt.want)
		}
	}
}

func TestRelease(t *testing.T) {
	for release, want := range map[string]Level{
		"6.1.0-56-cloud-amd64": OK, "5.12.0": OK, "5.12": OK, "5.11.22": Warning, "4.18.0-553.el8_10.x86_64": Warning, "5.4-rc1": Warning, "": OK, "strange": OK,
	} {
		if got := Release(release); got.Level != want {
			t.Errorf("%q: got %+v, want %s", release, got, want)
		}
	}
}
