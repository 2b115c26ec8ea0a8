//go:build linux

package supervisor

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// guard is a container in the machine's network, with ports.
func (w *world) guard(ports ...spec.Port) *spec.Container {
	c := w.shell("guard", "")
	c.Role, c.Network.Mode, c.Restart, c.Ports = spec.Guard, spec.NetHost, spec.RestartUnlessStopped, ports
	program, _ := binaries()
	c.Process.Args = []string{"/init", "guard"}
	c.Mounts = []spec.Mount{{Type: spec.Bind, Source: program, Target: "/init", ReadOnly: true}}
	return c
}

// free is an address that nobody listens on.
func free(t testing.TB, host string) string {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func ask(t testing.TB, address string) string {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		t.Error(err)
		return ""
	}
	return hear(t, c)
}

func hear(t testing.TB, c net.Conn) string {
	t.Helper()
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	b, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestGuard(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		a, b := free(t, "127.0.0.1"), free(t, "::1")
		w.up(w.guard(spec.Port{Address: a, Target: 80, Worker: "one"}, spec.Port{Address: b, Target: 8080}))
		first := ask(t, a)
		who, ok := strings.CutPrefix(first, "port 80 ")
		if !ok || ask(t, b) != "port 8080 "+who {
			t.Errorf("%q", first)
		}
		for range 3 {
			c, err := w.Control(t.Context(), "")
			w.must(err)
			if got := hear(t, c); got != "control "+who {
				t.Errorf("%q, want control %s", got, who)
			}
		}
		// It crashes: ports stay open, the next one has them, and a new channel.
		begin := testutil.Now()
		w.must(w.Signal(t.Context(), "guard", "SIGKILL"))
		testutil.Eventually(w, "its end", func() bool { return w.seen("guard").State != api.Running || w.seen("guard").Restarts == 1 })
		second := ask(t, a) // waits in the meantime
		again, ok := strings.CutPrefix(second, "port 80 ")
		if !ok || again == who {
			t.Errorf("after the crash: %q, before %q", second, first)
		}
		if took := testutil.Since(begin); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if r, err := w.Ready(t.Context(), "guard"); err != nil || !r.Ready {
			t.Errorf("%+v, %v", r, err)
		}
		if s := w.seen("guard"); s.State != api.Running || s.Restarts != 1 || !s.Ready {
			t.Errorf("%+v", s)
		}
		c, err := w.Control(t.Context(), "guard")
		w.must(err)
		if got := hear(t, c); got != "control "+again {
			t.Errorf("%q, want control %s", got, again)
		}
		// Stopped, it is not restarted, and its ports are free.
		w.must(w.Stop(t.Context(), "guard"))
		l, err := net.Listen("tcp", a)
		if err != nil {
			t.Fatal("after stop:", err)
		}
		defer l.Close()
		if _, err := w.Control(t.Context(), ""); code(err) != api.CodeNotRunning {
			t.Error(err)
		}
		// Taken by another.
		err = w.Start(t.Context(), "guard")
		if e, ok := err.(*api.Error); !ok || e.Code != api.CodePortTaken || e.Address != a || e.Worker != "one" {
			t.Errorf("%#v", err)
		}
		l.Close()
		w.must(w.Start(t.Context(), "guard"))
	})
}

// TestRestart: a program that ends again and again is started more and more
// seldom, and not after stop.
func TestRestart(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		c := w.shell("flaky", "echo begun; exit 3")
		c.Restart = spec.RestartUnlessStopped
		begin, watch := time.Now(), testutil.Now()
		w.run(c)
		if r, err := w.Ready(t.Context(), "flaky"); err != nil || r.Ready || !r.Ended || r.ExitCode != 3 {
			t.Errorf("%+v, %v", r, err)
		}
		testutil.Eventually(w, "restarts", func() bool { return w.seen("flaky").Restarts == 3 })
		if time.Since(begin) < 700*time.Millisecond || testutil.Since(watch) > 3*time.Second {
			t.Errorf("three restarts after %v: 100, 200 and 400 ms were to pass", time.Since(begin))
		}
		testutil.Eventually(w, "the next wait", func() bool { return w.seen("flaky").State == api.Restarting })
		watch = testutil.Now()
		w.must(w.Stop(t.Context(), "flaky"))
		if took := testutil.Since(watch); took > 300*time.Millisecond {
			t.Errorf("stop took %v", took)
		}
		time.Sleep(1200 * time.Millisecond)
		if s := w.seen("flaky"); s.State != api.Exited || s.Restarts != 3 || s.ExitCode != 3 {
			t.Errorf("after stop: %+v", s)
		}
		if got := strings.Count(w.log("flaky"), "begun"); got != 4 {
			t.Errorf("it began %d times", got)
		}
		w.must(w.Start(t.Context(), "flaky"))
		w.must(w.Remove(t.Context(), "flaky"))
	})
}

// TestNetwork: who joins has the other's network, and nobody without.
func TestNetwork(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		room := w.shell("room", sleeper)
		room.Role, room.Network.Mode = spec.Room, spec.NetRoom
		inode := "stat -L -c %i /proc/self/ns/net; " + sleeper
		join := w.shell("one", inode)
		join.Network = spec.Network{Mode: spec.NetJoin, Of: "room"}
		w.must(w.Create(t.Context(), join))
		if err := w.Start(t.Context(), "one"); code(err) != api.CodeUnknown {
			t.Error(err)
		}
		w.must(w.Create(t.Context(), room))
		if err := w.Start(t.Context(), "one"); code(err) != api.CodeNotRunning {
			t.Error(err)
		}
		w.must(w.Start(t.Context(), "room"))
		w.must(w.Start(t.Context(), "one"))
		other := w.shell("other", inode)
		w.run(other)
		for _, name := range []string{"one", "other", "room"} {
			if r, err := w.Ready(t.Context(), name); err != nil || !r.Ready {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
		}
		if mine, theirs := w.log("one"), w.log("other"); mine == theirs || mine != w.inside("room")+sleeperSays {
			t.Errorf("%q, %q; the room has %s", mine, theirs, w.inside("room"))
		}
		if s := w.seen("one"); !s.Joined.Equal(w.seen("room").Started) || s.Joined.IsZero() {
			t.Errorf("%+v", s)
		}
		// The room's end closes it; the worker lives on, and a new room is another.
		w.must(w.Stop(t.Context(), "room"))
		if s := w.seen("one"); s.State != api.Running {
			t.Errorf("%+v", s)
		}
		w.must(w.Start(t.Context(), "room"))
		if s := w.seen("one"); s.Joined.Equal(w.seen("room").Started) {
			t.Error("it seems to be in the new room")
		}
	})
}

const sleeperSays = "READY\n"

// inside is the inode of a service's network namespace, as a line.
func (w *world) inside(service string) string {
	pid, f, err := w.Pid(w.Context(), service)
	w.must(err)
	defer f.Close()
	inode, err := namespaceOf(pid)
	w.must(err)
	return fmt.Sprintln(inode)
}
