package guard

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/room/handover"
)

// brokenRoom hands over sockets of the test's own, and refuses ports when it is
// told to, as a room does whose kernel refuses a rule.
type brokenRoom struct {
	files  []*os.File
	mu     sync.Mutex
	refuse bool
	told   []string
}

func (b *brokenRoom) Listen(uint16) (int, error) { return -1, errors.New("no endpoints") }

func newBrokenRoom(t *testing.T) *brokenRoom {
	b := &brokenRoom{}
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	add := func(f *os.File, err error) {
		if err != nil {
			t.Fatal(err)
		}
		b.files = append(b.files, f)
		t.Cleanup(func() { f.Close() })
	}
	add(udp.File())
	for range 5 {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		add(l.File())
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	add(os.NewFile(uintptr(fd), "nflog"), err)
	return b
}

func (b *brokenRoom) Sockets() (kind handover.Kind, fds []int, err error) {
	for _, f := range b.files {
		fds = append(fds, int(f.Fd()))
	}
	return handover.NFTables, fds, nil
}

func (b *brokenRoom) Dial(uint16) (int, error)             { return -1, errors.New("no") }
func (b *brokenRoom) Counters() (handover.Counters, error) { return handover.Counters{Denied4: 5}, nil }
func (b *brokenRoom) Redirect(p []firewall.PortRange) (handover.Opened, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse {
		return handover.Opened{}, errors.New("no such module")
	}
	b.told = append(b.told, firewall.FormatPorts(p))
	return handover.Opened{}, nil
}

func (b *brokenRoom) set(refuse bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = refuse
}

func (b *brokenRoom) last() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told) == 0 {
		return "nothing"
	}
	return b.told[len(b.told)-1]
}

// TestB21_RoomThatCantBeTold: a room that can't be told its ports isn't served,
// and nobody is told READY; one that can't be told a change says so, decides by
// the new policy all the same, and is told at its next hand-over.
func TestB21_RoomThatCantBeTold(t *testing.T) {
	p := restricted(t, "ssh.example.org:22")
	p.Version = firewall.PolicyVersion
	dir := t.TempDir()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{Policy: &p, Sockets: dir, ResolvConf: "/nonexistent", Out: in})
	if err != nil {
		t.Fatal(err)
	}
	b := newBrokenRoom(t)
	b.set(true)
	l, err := handover.Listen(filepath.Join(dir, "room.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &handover.Server{Handler: b, UID: uint32(os.Getuid()), Stored: filepath.Join(dir, handover.StoredFile)}
	go s.Serve(l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); g.Run(ctx) }()
	defer func() { cancel(); <-done; l.Close() }()

	ready := make([]byte, made.MaxLine)
	out.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if n, err := out.Read(ready); err == nil {
		t.Errorf("a room that wasn't told: %q", ready[:n])
	}
	if g.rooms["room"].current() != nil || g.state().Rooms[0].Served {
		t.Error("a room that wasn't told is served")
	}
	b.set(false)
	out.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := out.Read(ready); err != nil || !strings.HasSuffix(string(ready[:n]), "\nREADY\n") {
		t.Fatalf("%q %v", ready[:n], err)
	}
	if b.last() != "22" {
		t.Errorf("READY, and the room was told %s", b.last())
	}

	b.set(true)
	_, err = g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{liveChange(t, "x.example:23"), liveChange(t, "deny ssh.example.org:1-65535")}})
	if err == nil || !strings.Contains(err.Error(), `room "room" can't be sent its ports`) || !strings.Contains(err.Error(), "no such module") {
		t.Errorf("%v", err)
	}
	ssh, _ := firewall.ParseName("ssh.example.org")
	if g.store.Room("room").Matcher.Name(ssh, 22).Allowed {
		t.Error("the change doesn't hold")
	}
	b.set(false)
	g.rooms["room"].current().client.Close() // the room comes again
	for end := time.Now().Add(3 * time.Second); b.last() != "22-23" && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	if b.last() != "22-23" {
		t.Errorf("at the next hand-over it was told %s", b.last())
	}
	// The ports that it has already are not sent again.
	b.mu.Lock()
	n := len(b.told)
	b.mu.Unlock()
	if _, err := g.Do(t.Context(), control.Request{Op: control.OpChange, Changes: []firewall.Live{liveChange(t, "y.example:23")}}); err != nil || b.last() != "22-23" || len(b.told) != n {
		t.Errorf("%v, told %v", err, b.told)
	}
	if s := g.state().Rooms[0]; !s.Served || s.Refused != 5 {
		t.Errorf("%+v", s)
	}
}
