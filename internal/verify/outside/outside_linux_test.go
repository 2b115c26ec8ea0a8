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

// TestFiles: where no process opens files for another one, none is said to.
func TestFiles(t *testing.T) {
	if _, err := Files(1 << 30); err == nil || !strings.Contains(err.Error(), "has no process") {
		t.Errorf("none: %v", err)
	}
	if p, err := Files(os.Getpid()); err == nil {
		t.Errorf("this process: %v", p.Status)
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
	if got := terminal("7 (a) b) S 1 7 7 34816 7 4194560"); got != "34816" {
		t.Errorf("the terminal: %q", got)
	}
	if got := terminal(""); got != "" {
		t.Errorf("no stat: %q", got)
	}
}
