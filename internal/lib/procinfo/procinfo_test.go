package procinfo

import (
	"slices"
	"testing"
)

func TestMounts(t *testing.T) {
	got := Mounts("36 35 98:0 /a\\040b /x\\011y rw,noatime shared:1 master:2 - ext4 /dev/root rw,errors=continue\n" +
		"37 35 0:1 / /tmp ro - tmpfs none rw,size=64k\nmalformed\n38 35 0:1 / - x\n")
	if len(got) != 2 {
		t.Fatalf("%d mounts: %+v", len(got), got)
	}
	m := got[0]
	if m.Root != "/a b" || m.Target != "/x\ty" || m.Type != "ext4" || m.Source != "/dev/root" || !m.Peers || !m.Has("noatime") || m.ReadOnly() || m.ID != 36 || m.Parent != 35 {
		t.Errorf("%+v", m)
	}
	if m := got[1]; m.Peers || !m.ReadOnly() || m.Size() != 64<<10 {
		t.Errorf("%+v, size %d", m, m.Size())
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		name, kind, super string
		want              int64
	}{
		{"in kilobytes", "tmpfs", "size=65536k", 64 << 20},
		{"none", "tmpfs", "rw", 0},
		{"another unit", "tmpfs", "size=1g", 0},
		{"negative", "tmpfs", "size=-1k", 0},
		{"another file system", "ext4", "size=64k", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := Mount{Type: tt.kind, Super: []string{tt.super}}
			if got := m.Size(); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	const root = "1 0 0:1 / / ro - overlay o rw\n"
	for _, tt := range []struct {
		name, text string
		want       []int
	}{
		{"side by side", root + "2 1 0:2 / /a rw - tmpfs t rw\n3 1 0:3 / /b rw - tmpfs t rw\n", []int{1, 2, 3}},
		{"one in another", root + "2 1 0:2 / /a rw - tmpfs t rw\n3 2 0:3 / /a/b ro - tmpfs t rw\n", []int{1, 2, 3}},
		{"over another", root + "2 1 0:2 / /a ro - tmpfs t rw\n3 2 0:3 / /a rw - tmpfs t rw\n", []int{1, 3}},
		{"over one that has others", root + "2 1 0:2 / /a rw - tmpfs t rw\n3 2 0:3 / /a/b ro - tmpfs t rw\n4 3 0:3 / /a/b/c ro - tmpfs t rw\n5 2 0:4 / /a rw - tmpfs t rw\n6 5 0:5 / /a/b rw - tmpfs t rw\n", []int{1, 5, 6}},
		{"over the root", root + "2 1 0:2 / /a ro - tmpfs t rw\n3 1 0:3 / / rw - tmpfs t rw\n", []int{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []int
			for _, m := range Reachable(Mounts(tt.text)) {
				got = append(got, m.ID)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	got := Status("Name:\ta\nUid:\t1\t1\t1\t1\nUid:\t0\nGroups:\t \nOther:\t1\n", []string{"Uid", "Groups"})
	if len(got) != 2 || got["Uid"] != "1 1 1 1" || got["Groups"] != "" {
		t.Errorf("%q", got)
	}
}

func TestInterfaces(t *testing.T) {
	if got := Interfaces("Inter-|   Receive |  Transmit\n face |bytes    packets|bytes\n    lo:  1 2\n  eth0: 3 4\n"); !slices.Equal(got, []string{"eth0", "lo"}) {
		t.Errorf("%v", got)
	}
}

func TestListens(t *testing.T) {
	const text = "Num       RefCount Protocol Flags    Type St Inode Path\n" +
		"0000000000000000: 00000002 00000000 00010000 0001 01 2 /run/a/x.sock\n" +
		"0000000000000000: 00000003 00000000 00000000 0001 03 3 /run/b/y.sock\n"
	for _, tt := range []struct {
		begin string
		want  bool
	}{{"/run/a/", true}, {"/run/b/", false}, {"/run/c/", false}} {
		if got := Listens(text, tt.begin, ".sock"); got != tt.want {
			t.Errorf("%s: %v", tt.begin, got)
		}
	}
}
