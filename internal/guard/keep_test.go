package guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/room/handover"
)

// spend sends n bytes to a meter by a connection of its own, and returns how
// many of it went before the connection was cut.
func (w *world) spend(m *meter, to string, n int) {
	w.Helper()
	want := m.bytes.Load() + int64(n)
	c := w.mustDial("room", "tcp", to)
	if _, err := c.Write(make([]byte, n)); err != nil {
		w.Fatal(err)
	}
	w.exactly(m, want)
	c.Close()
}

// TestB27_OutlivesTheGuard: after a crash of the guard denies hold and budgets
// are spent, before anything of the room is served; what was opened is closed.
func TestB27_OutlivesTheGuard(t *testing.T) {
	p := budgeted(t, "allowed.example.org", "198.51.100.192/26:9000", "198.51.100.128/26:7000 upload 64K/d", "198.51.100.128/26:7001 upload 64K/d")
	other := p.Rooms[0]
	other.Room, other.Workers = "other", []string{"carol"}
	p.Rooms = append(p.Rooms, other)
	w := newWorld(t, p)
	all, part := w.meter("198.51.100.150:7000"), w.meter("198.51.100.150:7001")
	go all.drink()
	go part.drink()
	w.liveFor(0, "deny allowed.example.org:1-65535")
	w.liveFor(time.Hour, "deny 198.51.100.200/32:9000")
	w.liveFor(0, "ssh.example.org:22")
	ofRoom := liveChange(t, "deny 198.51.100.201/32:9000")
	ofRoom.Room = "other"
	w.change(control.Request{Op: control.OpChange, Changes: []firewall.Live{ofRoom}})
	if !w.anyIP { // rooms that can't learn
		w.change(control.Request{Op: control.OpLearn, Rooms: []string{"other"}, For: control.Duration(time.Hour)})
	}
	w.spend(all, "198.51.100.150:7000", 64<<10)
	w.spend(part, "198.51.100.150:7001", 30<<10)
	before := w.state()

	w.guard.kill()
	waiting := w.mustDial("room", "tcp", "198.51.100.200:9000") // in the backlog
	io.WriteString(waiting, "x")
	w.startGuard()
	if n, err := waiting.Read(make([]byte, 1)); err == nil {
		t.Errorf("what waited for the next guard was carried where it is denied: %d bytes", n)
	}
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil {
		t.Error("a denied name was carried")
	}
	w.refused("other", "198.51.100.200:9000")
	w.refused("other", "198.51.100.201:9000")
	w.carried("room", "198.51.100.201:9000")
	w.carried("other", "198.51.100.202:9000")
	if _, err := w.dial("room", "tcp", testnet.SSH+":22"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("a live allow is open: %v", err)
	}
	w.refused("room", "198.51.100.150:7000")
	// A connection that sends too much is cut after what is left: what had been
	// reserved is lost.
	c := w.mustDial("room", "tcp", "198.51.100.150:7001")
	c.Write(make([]byte, 64<<10))
	io.Copy(io.Discard, c)
	time.Sleep(100 * time.Millisecond)
	if n := part.bytes.Load(); n > 64<<10 || n < 63<<10 {
		t.Errorf("%d bytes by both guards, want at most %d and 1024 less", n, 64<<10)
	}
	if n := all.bytes.Load(); n != 64<<10 {
		t.Errorf("%d bytes by both guards, want %d", n, 64<<10)
	}
	after := w.state()
	if len(after.Learning) != 0 || len(after.Live) != 3 {
		t.Errorf("learning %v, live %+v", after.Learning, after.Live)
	}
	ends := 0
	for _, l := range after.Live {
		if !l.Deny || l.Rule.Line == "" {
			t.Errorf("%+v", l)
		}
		if l.Until.IsZero() {
			continue
		}
		ends++
		if d := l.Until.Sub(before.Live[1].Until); d.Abs() > 100*time.Millisecond {
			t.Errorf("it ends %s later than it would have", d)
		}
	}
	if ends != 1 {
		t.Errorf("%d of %+v end", ends, after.Live)
	}
	w.guard.eventually(3, "notes", func(e event) bool {
		return e.Reason == "live-change" && strings.HasSuffix(e.Rule, " goes on")
	})

	// A reset ends it, and nothing comes back.
	if a := w.change(control.Request{Op: control.OpChange, Reset: true}); a.Live != 0 {
		t.Errorf("%+v", a)
	}
	w.spend(all, "198.51.100.150:7000", 1<<10)
	w.guard.kill()
	w.startGuard()
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err != nil {
		t.Errorf("after the reset: %v", err)
	}
	if s := w.state(); len(s.Live) != 0 || s.Rooms[0].Budgets[0].Used > 3<<10 {
		t.Errorf("after the reset: %+v", s)
	}
}

// kept opens what a room keeps for the guard.
func (w *world) kept(room string) *os.File {
	w.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.rooms[room].cmd.Process.Pid))
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range files {
		if to, _ := os.Readlink(f); strings.HasPrefix(to, "/memfd:workshop-kept") {
			file, err := os.OpenFile(f, os.O_RDWR, 0)
			if err != nil {
				w.Fatal(err)
			}
			w.Cleanup(func() { file.Close() })
			return file
		}
	}
	w.Fatalf("room %s keeps nothing: %q", room, files)
	return nil
}

// TestUnreadableIsClosed: a room of which nobody knows what narrows it is not
// served until that is said, or until it comes anew; the others are.
func TestUnreadableIsClosed(t *testing.T) {
	p := restricted(t, "198.51.100.192/26:9000")
	for _, name := range []string{"other", "third"} {
		r := p.Rooms[0]
		r.Room = name
		p.Rooms = append(p.Rooms, r)
	}
	w := newWorld(t, p)
	w.liveFor(0, "deny 198.51.100.200/32:9000")
	w.guard.kill()
	for _, room := range []string{"room", "third"} {
		f := w.kept(room)
		if _, err := f.WriteAt(make([]byte, handover.KeptSize), 0); err != nil {
			t.Fatal(err)
		}
	}
	w.startGuard()
	closed := func(room string) string {
		for _, r := range w.state().Rooms {
			if r.Room == room && r.Closed != "" && !r.Served {
				return r.Closed
			}
		}
		return ""
	}
	for _, room := range []string{"room", "third"} {
		if why := closed(room); !strings.Contains(why, "no slot has a valid checksum") {
			t.Errorf("%s: closed for %q", room, why)
		}
		c := w.mustDial(room, "tcp", "198.51.100.201:9000")
		io.WriteString(c, "x")
		c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s was served: %d bytes", room, n)
		}
	}
	w.guard.eventually(2, "notes", func(e event) bool {
		return e.Verdict == "note" && e.Reason == "kept" && strings.Contains(e.Rule, "can't be read")
	})
	w.carried("other", "198.51.100.201:9000")
	w.refused("other", "198.51.100.200:9000")
	w.liveFor(0, "deny 198.51.100.202/32:9000")

	served := func(room string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			for _, r := range w.state().Rooms {
				if r.Room == room && r.Served {
					return
				}
			}
		}
		t.Fatalf("%s isn't served", room)
	}
	// It comes anew: nothing is left of what was unreadable.
	w.rooms["third"].kill()
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	w.startRoom(p.Rooms[2], ns)
	served("third")
	w.carried("third", "198.51.100.201:9000")
	if why := closed("room"); why == "" {
		t.Error("another room was opened along")
	}
	w.change(control.Request{Op: control.OpReopen})
	if why := closed("room"); why != "" {
		t.Errorf("reopened, and the state says closed for %q", why)
	}
	served("room")
	w.carried("room", "198.51.100.201:9000")
	// What the others had for all rooms, and what came since, is in force.
	for _, room := range []string{"room", "third"} {
		w.refused(room, "198.51.100.200:9000")
		w.refused(room, "198.51.100.202:9000")
		if why := closed(room); why != "" {
			t.Errorf("%s: closed for %q", room, why)
		}
	}
	// And it is kept from now on.
	w.guard.kill()
	w.startGuard()
	w.refused("room", "198.51.100.202:9000")
}

// again starts other rooms and another guard, after all have ended.
func (w *world) again(p firewall.Policy) {
	w.Helper()
	w.guard.kill()
	for name, room := range w.rooms {
		room.kill()
		delete(w.rooms, name)
	}
	w.policy.Rooms = p.Rooms
	if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(&w.policy), 0o644); err != nil {
		w.Fatal(err)
	}
	w.startRooms()
}

// TestB27_OutlivesTheRooms: denies hold after rooms and guard have ended, whatever the
// rooms are called then and whoever is in them, before anything is served.
func TestB27_OutlivesTheRooms(t *testing.T) {
	p := restricted(t, "198.51.100.192/26:9000", "allowed.example.org:80")
	other := p.Rooms[0]
	other.Room, other.Workers = "other", []string{"carol"}
	p.Rooms = append(p.Rooms, other)
	w := newWorld(t, p)
	w.liveFor(time.Hour, "deny 198.51.100.200/32:9000")
	w.liveFor(0, "@other deny 198.51.100.201/32:9000", "@other deny allowed.example.org:80", "ssh.example.org:2222")
	w.carried("room", "198.51.100.201:9000")
	before := w.state()

	one := restricted(t, "198.51.100.192/26:9000", "allowed.example.org:80")
	one.Rooms[0].Room, one.Rooms[0].Workers = "one", []string{"alice", "bob", "carol"}
	w.again(one)
	waiting := w.mustDial("one", "tcp", testnet.Allowed+":80") // in the backlog
	io.WriteString(waiting, "GET / HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
	w.startGuard()
	answer := make([]byte, 12)
	if _, err := io.ReadFull(waiting, answer); err != nil || string(answer) != "HTTP/1.1 403" {
		t.Errorf("what waited for the next guard: %q, %v", answer, err)
	}
	w.refused("one", "198.51.100.200:9000")
	w.refused("one", "198.51.100.201:9000")
	w.carried("one", "198.51.100.202:9000")
	after := w.state()
	if len(after.Live) != 3 || after.Live[1].Room != "one" {
		t.Fatalf("live: %+v", after.Live)
	}
	if d := after.Live[0].Until.Sub(before.Live[0].Until); d.Abs() > 100*time.Millisecond {
		t.Errorf("it ends %s later than it would have", d)
	}

	// The same rooms, but carol is in that of the others.
	p.Rooms[0].Workers, p.Rooms[1].Workers = []string{"alice", "carol"}, []string{"bob"}
	w.again(p)
	w.startGuard()
	w.refused("room", "198.51.100.201:9000")

	w.change(control.Request{Op: control.OpChange, Reset: true})
	w.again(p)
	w.startGuard()
	w.carried("room", "198.51.100.200:9000")
	w.carried("room", "198.51.100.201:9000")
}

// TestUnreadableDenies: without the stored denies no room is served until that is said,
// and a deny of that time doesn't hide that they are unknown.
func TestUnreadableDenies(t *testing.T) {
	p := restricted(t, "198.51.100.192/26:9000")
	w := newWorld(t, p)
	w.liveFor(0, "deny 198.51.100.200/32:9000")
	w.guard.kill()
	stored := filepath.Join(w.dir, "sockets", handover.StoredFile)
	if err := os.WriteFile(stored, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.startGuard()
		if s := w.state().Rooms[0]; s.Served || s.Closed == "" {
			t.Fatalf("%+v", s)
		}
		w.liveFor(0, "deny 198.51.100.202/32:9000")
		w.guard.kill()
	}
	w.startGuard()
	w.change(control.Request{Op: control.OpReopen})
	w.carried("room", "198.51.100.200:9000")
	w.guard.kill()
	w.startGuard()
	w.carried("room", "198.51.100.200:9000")
	if s := w.state(); len(s.Live) != 0 || !s.Rooms[0].Served {
		t.Errorf("%+v", s)
	}
}

// oldRoom hands over its sockets and knows nothing else.
func oldRoom(t *testing.T, l *net.UnixListener, b *brokenRoom) {
	_, fds, _ := b.Sockets()
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			request := make([]byte, 1000)
			for {
				n, err := c.Read(request)
				if err != nil || n == 0 {
					return
				}
				if string(request[:n]) == "sockets" {
					c.WriteMsgUnix([]byte("ok"), unix.UnixRights(fds...), nil)
				} else {
					c.Write([]byte("error unknown request"))
				}
			}
		}()
	}
}

// TestRoomThatCantKeep: a room that doesn't know how to keep anything isn't served.
func TestRoomThatCantKeep(t *testing.T) {
	p := restricted(t, "ssh.example.org:22")
	p.Version = firewall.PolicyVersion
	dir := t.TempDir()
	g, err := New(Config{Policy: &p, Sockets: dir, ResolvConf: "/nonexistent", Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	l, err := handover.Listen(filepath.Join(dir, "room.sock"))
	if err != nil {
		t.Fatal(err)
	}
	go oldRoom(t, l, newBrokenRoom(t))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	defer func() { cancel(); <-done; l.Close() }()
	select {
	case <-g.rooms["room"].served:
	case <-time.After(5 * time.Second):
		t.Fatal("others would wait for it")
	}
	if s := g.state().Rooms[0]; s.Served || !strings.Contains(s.Closed, "unknown request") {
		t.Errorf("%+v", s)
	}
}
