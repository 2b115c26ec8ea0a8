//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test binary stand in for workshop-init where a probe
// starts itself again.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		os.Exit(Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func run(t *testing.T, args ...string) ([]Result, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Main(args, &out, &errs)
	var results []Result
	for d := json.NewDecoder(&out); d.More(); {
		var r Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	if errs.Len() > 0 {
		t.Log(errs.String())
	}
	return results, code
}

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"connect 1.2.3.4:5", []string{"connect", "1.2.3.4:5"}},
		{`tcp a:1  send="GET / HTTP/1.1\r\n\r\n" x`, []string{"tcp", "a:1", "send=GET / HTTP/1.1\r\n\r\n", "x"}},
		{`write "/a b"`, []string{"write", "/a b"}},
	} {
		got, err := split(c.in)
		if err != nil {
			t.Errorf("split(%q): %v", c.in, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("split(%q):\n%s", c.in, d)
		}
	}
	if _, err := split(`a "b`); err == nil {
		t.Error("quotes that don't end were read")
	}
}

func TestExpectation(t *testing.T) {
	for _, c := range []struct {
		probe, seen string
		ok          bool
		code        int
	}{
		{"syscall getpid -> ok", "ok", true, 0},
		{"syscall getpid -> EPERM|o*", "ok", true, 0},
		{"syscall getpid -> EPERM", "ok", false, 1},
		{"syscall getpid", "ok", true, 0},
		{"read /nonexistent -> ENOENT", "ENOENT", true, 0},
		{"env WORKSHOP_NO_SUCH_VARIABLE -> unset", "unset", true, 0},
		{"exec /nonexistent -> ENOENT", "ENOENT", true, 0},
	} {
		got, code := run(t, c.probe)
		if code != c.code || len(got) != 1 || got[0].Seen != c.seen || got[0].OK != c.ok {
			t.Errorf("%s: code %d, %+v; want %+v", c.probe, code, got, c)
		}
	}
	for _, bad := range []string{"", "nothing", "connect", "connect a:1 limit=x", `"`} {
		if _, code := run(t, bad); code != 2 {
			t.Errorf("%q: code %d, want 2", bad, code)
		}
	}
}

func TestConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			c.Close()
		}
	}()
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := gone.Addr().String()
	gone.Close()
	got, code := run(t,
		"connect "+open+" -> open", "tcp "+open+" -> data", "connect "+closed+" -> ECONNREFUSED",
		"udp "+closed+" -> ECONNREFUSED", "loop 127.0.0.1:0 -> ok", "connect "+open+" for=30ms -> open",
		"http http://"+closed+"/ -> ECONNREFUSED", "bind tcp "+open+" -> EADDRINUSE")
	if code != 0 {
		t.Errorf("code %d: %+v", code, got)
	}
	if got[1].Detail != "hello" {
		t.Errorf("tcp saw %q", got[1].Detail)
	}
}

func TestFilesAndProcesses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	got, code := run(t,
		"write "+file+" -> ok", "stat "+file+" -> ENOENT", `write `+file+` text="a b" -> ok`, "read "+file+" -> ok",
		"list "+dir+" -> file", "rename "+file+" "+file+"2 -> ok", "remove "+file+"2 -> ok", "mkdir "+file+" -> ok",
		"fill "+file+" 2M -> ok", "memory 1M -> ok", "processes 3 -> ok", "mount / -> rw|ro", "status NoNewPrivs -> 0|1",
		"exec /proc/self/exe -test.run=^$ -> exit 0")
	if code != 0 {
		t.Errorf("code %d: %+v", code, got)
	}
	if got[3].Detail != "a b" {
		t.Errorf("read saw %q", got[3].Detail)
	}
}

func TestHelpNamesEveryProbe(t *testing.T) {
	var out bytes.Buffer
	Main([]string{"help"}, &out, &out)
	for _, p := range probes() {
		if !strings.Contains(out.String(), "  "+p.name+" ") || p.tells == "" {
			t.Errorf("%s is not in the help", p.name)
		}
	}
}
