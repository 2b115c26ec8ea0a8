//go:build linux

package toolbox

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// TestDoorRefusesOthers: a process of the worker that connects instead of PID 1
// is let go, and the session comes none the less.
func TestDoorRefusesOthers(t *testing.T) {
	r := open(t, everything())
	// The intruder is in the worker's namespaces and has PID 1's uid; it connects
	// to everything that appears, faster than PID 1 where it can.
	intruder := r.enter("perl", "-e", `use Socket; $| = 1; $SIG{PIPE} = "IGNORE"; print "ready\n";
		for (;;) { opendir D, "/run/workshop"; for (grep /\.(sock|new)$/, readdir D) {
			socket(S, AF_UNIX, SOCK_STREAM, 0);
			if (connect(S, sockaddr_un("/run/workshop/$_"))) { $n++; syswrite S, "\0\0\0\0\2{}"; push @keep, *S{IO}; undef *S; print "in $n\n" }
		} closedir D }`)
	out, err := intruder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := intruder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { killIn(t, r, "perl"); intruder.Wait() }()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		b := make([]byte, 100)
		n, _ := out.Read(b)
		got <- string(b[:n])
		for { // the pipe must not fill
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	for range 200 {
		conn, err := dialin.Accept(context.Background(), r.door, r.pid())
		if err != nil {
			t.Logf("no session: %v", err) // the engine's way is left
		} else {
			c := r.greet(conn, RoleTools)
			if s := c.shell("echo ok"); s.Stdout.Text != "ok\n" {
				t.Errorf("%+v", s)
			}
			c.Close()
		}
		select {
		case s := <-got:
			if !strings.HasPrefix(s, "in ") {
				t.Errorf("the intruder said %q", s)
			}
			return
		default:
		}
	}
	t.Error("the intruder never was in time: this test shows nothing")
}

func killIn(t *testing.T, r *room, name string) {
	if err := r.enter("sh", "-c", "for p in /proc/[0-9]*; do [ $(cat $p/comm) = "+name+" ] && kill -9 ${p#/proc/}; done; true").Run(); err != nil {
		t.Log(err)
	}
}

// TestDoorIsReadOnly: no process of the worker can put anything in the
// directory, nor a socket of its own before PID 1.
func TestDoorIsReadOnly(t *testing.T) {
	r := open(t, everything())
	c := r.session(RoleTools)
	for _, line := range []string{"touch /run/workshop/x.sock", "ln -s /tmp/x /run/workshop/x.sock", "mv /run/workshop /run/w", "umount /run/workshop", "mount --bind /tmp /run/workshop"} {
		if got := c.shell(line); got.ExitCode == 0 {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// TestDoorWantsOutside: PID 1 takes no listener that is a process of the worker,
// wherever its socket is.
func TestDoorWantsOutside(t *testing.T) {
	dir, err := os.MkdirTemp("", "ws-door")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Chmod(dir, 0o777)
	r := openWith(t, setting{Grant: text(t, everything()), Door: dir})
	// As if the directory could be written to: the listener is in the worker,
	// its socket gets into the directory by the host.
	listener := r.enter("perl", "-e", `use Socket; $| = 1; socket(S, AF_UNIX, SOCK_STREAM, 0);
		bind(S, sockaddr_un($ARGV[0])) or die $!; listen(S, 5); print "ready\n"; accept(C, S) or die; print sysread(C, $x, 1) // "closed", "\n"; sleep 60`, dir+"/in.new")
	out, err := listener.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	listener.Stderr = os.Stderr
	if err := listener.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { killIn(t, r, "perl"); listener.Wait() }()
	b := make([]byte, 20)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "ready\n" {
		t.Fatal(string(b[:n]), err)
	}
	if err := os.Rename(dir+"/in.new", dir+"/in.sock"); err != nil {
		t.Fatal(err)
	}
	out.(*os.File).SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := out.Read(b); err != nil || string(b[:n]) != "0\n" && string(b[:n]) != "closed\n" {
		t.Errorf("it got %q, %v", b[:n], err)
	}
	if n := r.sessions(); len(n) > 0 {
		t.Error("a session was started")
	}
	if got := r.session(RoleTools).shell("echo ok"); got.Stdout.Text != "ok\n" {
		t.Errorf("%+v", got)
	}
}

// TestAccept: errors of the host's side, leftovers, long paths; nothing stays.
func TestAccept(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-name-", 15))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "x.sock")
	os.WriteFile(old, nil, 0o600)
	long := time.Now().Add(-time.Minute)
	os.Chtimes(old, long, long)
	begin := time.Now()
	if _, err := dialin.Accept(ctx, dir, os.Getpid()); err == nil || time.Since(begin) < dialin.Wait/2 {
		t.Errorf("without a worker: %v after %v", err, time.Since(begin))
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := dialin.Accept(ctx, dir, 0); err == nil {
		t.Error("pid 0 was accepted")
	}
	if _, err := dialin.Accept(ctx, dir+"/none", 1); err == nil {
		t.Error("a directory that isn't there was accepted")
	}
	cancelled, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	begin = time.Now()
	if _, err := dialin.Accept(cancelled, dir, os.Getpid()); err == nil || time.Since(begin) > dialin.Wait/2 {
		t.Errorf("cancelled: %v after %v", err, time.Since(begin))
	}
	// A peer that is the one that was named.
	go func() {
		for range 100 {
			names, _ := filepath.Glob(dir + "/*.sock")
			for _, n := range names {
				fd, _ := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
				defer unix.Close(fd)
				if c, err := net.Dial("unix", filepath.Join("/proc/self/fd", strconv.Itoa(fd), filepath.Base(n))); err == nil {
					defer c.Close()
					time.Sleep(time.Second)
					return
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	c, err := dialin.Accept(ctx, dir, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestMaxSessions: one more waits for the end of another.
func TestMaxSessions(t *testing.T) {
	r := open(t, everything())
	var all []*client
	for range dialin.MaxSessions {
		all = append(all, r.session(RoleTools))
	}
	time.AfterFunc(100*time.Millisecond, func() { all[3].Close() })
	begin := time.Now()
	c := r.session(RoleTools)
	if time.Since(begin) < 90*time.Millisecond {
		t.Error("one more did not wait")
	}
	if got := c.shell("echo ok"); got.Stdout.Text != "ok\n" {
		t.Errorf("%+v", got)
	}
	if n := len(r.sessions()); n != dialin.MaxSessions {
		t.Errorf("%d sessions", n)
	}
}

// TestWithoutDoor: no directory, no error, and sessions through the engine.
func TestWithoutDoor(t *testing.T) {
	r := openWith(t, setting{Grant: text(t, everything()), Door: "none"})
	if _, err := dialin.Accept(context.Background(), t.TempDir(), r.pid()); err == nil {
		t.Error("there is a door")
	}
	c, _ := r.sessionByExec(RoleTools)
	if got := c.shell("echo ok"); got.Stdout.Text != "ok\n" {
		t.Errorf("%+v", got)
	}
}

// TestDoorEndsTheWorker: B60: the host ends a worker at its door, whatever the
// worker has left PID 1; what a host left that was killed ends nobody.
func TestDoorEndsTheWorker(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := dialin.Finish(dir); err != nil {
		t.Fatal(err)
	}
	r := openWith(t, setting{Grant: text(t, everything()), Door: dir})
	c := r.session(RoleTools) // it looks at the door, and goes on
	if got := c.shell("echo ok"); got.Stdout.Text != "ok\n" {
		t.Errorf("got %+v", got)
	}
	if out, err := r.enter("prlimit", "--pid", "1", "--nofile=1:1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	done, err := dialin.Finish(dir)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := r.cmd.Process.Wait(); ended <- err }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("PID 1 goes on")
	}
	done()
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("left in the door: %v, %v", names, err)
	}
}
