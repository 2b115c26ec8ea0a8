package outside

import (
	"net"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestNotOne: a process of another kind is an error: an engine elsewhere counts from one,
// too.
func TestNotOne(t *testing.T) {
	if _, err := Look(os.Getpid(), false); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("this process: %v", err)
	}
	if _, err := Look(1<<30, true); err == nil || !strings.Contains(err.Error(), "has no process") {
		t.Errorf("none: %v", err)
	}
}

func TestMounts(t *testing.T) {
	got := Mounts("36 35 98:0 /a\\040b /x\\011y rw,noatime shared:1 master:2 - ext4 /dev/root rw,errors=continue\n" +
		"37 35 0:1 / /tmp ro - tmpfs none rw,size=64k\nmalformed\n38 35 0:1 / - x\n")
	if len(got) != 2 {
		t.Fatalf("%d mounts: %+v", len(got), got)
	}
	m := got[0]
	if m.Root != "/a b" || m.Target != "/x\ty" || m.Type != "ext4" || m.Source != "/dev/root" || !m.Peers || !slices.Contains(m.Options, "noatime") {
		t.Errorf("%+v", m)
	}
	if got[1].Peers || got[1].Options[0] != "ro" || !slices.Contains(got[1].Super, "size=64k") {
		t.Errorf("%+v", got[1])
	}
}

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F:1F90": "127.0.0.1:8080", "00000000:0016": "0.0.0.0:22",
		"00000000000000000000000001000000:0050": "[::1]:80", "0000000000000000FFFF00000100007F:0050": "127.0.0.1:80",
		"": "", "0100007F": "", "xx:1F90": "", "0100007F:1F90F": "", "01:0050": "",
	} {
		if got, ok := address(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v, want %q", text, got, ok, want)
		}
	}
}

// TestListening finds a listener of its own.
func TestListening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all, err := Listening("self")
	if err != nil || !slices.Contains(all, l.Addr().String()) {
		t.Errorf("%v, %v, want %s", all, err, l.Addr())
	}
}

func TestSmallFiles(t *testing.T) {
	if got := interfaces("Inter-|   Receive |  Transmit\n face |bytes    packets|bytes\n    lo:  1 2\n  eth0: 3 4\n"); !slices.Equal(got, []string{"eth0", "lo"}) {
		t.Errorf("interfaces: %v", got)
	}
	if got := terminal("7 (a) b) S 1 7 7 34816 7 4194560"); got != "34816" {
		t.Errorf("the terminal: %q", got)
	}
	if got := terminal(""); got != "" {
		t.Errorf("no stat: %q", got)
	}
}
