//go:build linux

package e2e

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// mountsOnGVisor is a worker on gVisor with a directory that it reads, and one that it writes.
func mountsOnGVisor(t *testing.T, intent string) *scenario.Scenario {
	return onGVisor(t, func() *scenario.Scenario {
		s := scenario.At(t, intent, withMount("./src:/src\n      - {source: ./d, target: /d, mode: rw}"))
		mkdir(t, s.Dir, "d")
		s.Write("src/a", "old")
		s.Chown()
		return s
	})
}

// TestGVisorReplacedSource: gVisor's PID 1 doesn't see that a source has another name. Who
// asks for the worker does: it takes no command until it is recreated (B3, B8).
func TestGVisorReplacedSource(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := mountsOnGVisor(t, "a worker on gVisor takes no command in a directory that has another name on the host")
	if s == nil {
		return
	}
	at := func(name string) string { return filepath.Join(s.Dir, name) }
	const gone = "was replaced, renamed or removed on the host"
	for _, tt := range []struct {
		name, target string
		replace      func() error
	}{
		{"renamed", "/src", func() error { return os.Rename(at("src"), at("src2")) }},
		{"replaced", "/d", func() error { return errors.Join(os.Rename(at("d"), at("d2")), os.Mkdir(at("d"), 0o755)) }},
	} {
		s.Expect(0, "ps", "--strict")
		worker := lives(s)["worker"]
		s.Sees("worker", "write /d/file -> ok")
		if err := tt.replace(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // in which a worker on this machine's kernel has ended
		if lives(s)["worker"] != worker {
			t.Errorf("%s: the worker ended: gVisor sees more than is said", tt.name)
		}
		says(s, s.Expect(4, "ps", "--strict"), "what worker has at "+tt.target+" "+gone+" (B3, B8)", "`workshop up` recreates it")
		says(s, s.Expect(125, "exec", "worker", "--", "true"), "what worker worker has at "+tt.target+" "+gone, "recreate it: `workshop up`")
		says(s, s.Run("cp", "worker:/etc/hostname", at("copy")), gone)
		if d := s.Run("verify"); d.Code != 4 || !strings.Contains(d.Out, "what is at "+tt.target+" "+gone) {
			t.Errorf("%s: verify: exit code %d\n%s%s", tt.name, d.Code, d.Out, d.Err)
		}
		s.Write("src/a", tt.name)
		s.Chown()
		says(s, s.Expect(0, "up"), "a mount was replaced, renamed or removed on the host")
		if d := s.Run("exec", "worker", "--", "cat", "/src/a"); d.Out != tt.name {
			t.Errorf("%s: the worker reads %q\n%s", tt.name, d.Out, d.Err)
		}
	}
}

// TestGVisorRestarted: what a worker on gVisor has mounted is known of starts by `up` alone.
func TestGVisorRestarted(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := mountsOnGVisor(t, "a worker on gVisor that something else than up started is recreated by up")
	if s == nil {
		return
	}
	if err := s.Restart("worker"); err != nil {
		t.Fatal(err)
	}
	worker := lives(s)["worker"]
	says(s, s.Expect(125, "exec", "worker", "--", "true"), "was not compared with what was asked for since its start")
	s.Expect(0, "up")
	s.Sees("worker", "write /d/file -> ok")
	if now := lives(s)["worker"]; now == worker {
		t.Errorf("the worker is %s, as before", now)
	}
	execOfWorkerThatEnds(s)
}

// readsSocket connects to a unix socket.
const readsSocket = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(2).decode())"

// ownSocket makes a unix socket, and connects to it.
const ownSocket = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"

// TestGVisorGainedSocket: gVisor lets a worker connect to each socket of the host's in its
// mounts. One that came there after `up` is told (B7); its own sockets are no files.
func TestGVisorGainedSocket(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := mountsOnGVisor(t, "a socket of the host's that comes into a mount of a worker on gVisor is told by ps and verify")
	if s == nil {
		return
	}
	s.Expect(0, "exec", "worker", "--", "python3", "-c", ownSocket, "/d/own")
	if info, err := os.Lstat(filepath.Join(s.Dir, "d/own")); err == nil {
		t.Errorf("the worker's socket is %v here", info.Mode())
	}
	s.Expect(0, "ps", "--strict")
	path := filepath.Join(s.Dir, "src/late")
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("ok"))
			c.Close()
		}
	}()
	if d := s.Run("exec", "worker", "--", "python3", "-c", readsSocket, "/src/late"); d.Out != "ok\n" {
		t.Errorf("it isn't reached, so that nothing need be told: %s%s", d.Out, d.Err)
	}
	says(s, s.Expect(4, "ps", "--strict"), "worker can connect to sockets that came into its mounts (B7): "+path)
	says(s, s.Expect(0, "ps"), path)
	if d := s.Run("ps", "--format", "json"); !strings.Contains(d.Out, `"sockets": [`) || !strings.Contains(d.Out, path) {
		t.Errorf("ps --format json:\n%s", d.Out)
	}
	if d := s.Run("verify"); d.Code != 4 || !strings.Contains(d.Out, "the socket "+path+" came into its mounts") {
		t.Errorf("verify: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.Expect(0, "ps", "--strict")
}
