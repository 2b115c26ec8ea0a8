//go:build linux

package handover

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
)

// fakeRoom hands out pipes instead of sockets: the protocol doesn't look at
// what a descriptor is.
type fakeRoom struct {
	kind  Kind
	fds   []int
	open  Opened
	mu    sync.Mutex
	ports []firewall.PortRange
}

func (r *fakeRoom) Sockets() (Kind, []int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kind, r.fds, nil
}

// be changes the room while it is served.
func (r *fakeRoom) be(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
func (r *fakeRoom) Dial(port uint16) (int, error) {
	if port == firewall.PortTCP {
		return 0, errors.New("that port is the guard's own")
	}
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
}
func (r *fakeRoom) Listen(port uint16) (int, error) {
	if port < firewall.FirstEndpoint {
		return 0, errors.New("not an endpoint's port")
	}
	return r.fds[0], nil
}
func (r *fakeRoom) Redirect(p []firewall.PortRange) (Opened, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports = p
	return r.open, nil
}
func (r *fakeRoom) redirected() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return firewall.FormatPorts(r.ports)
}
func (r *fakeRoom) Counters() (Counters, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Counters{1 << 40, 7, r.kind}, nil
}

// serve starts a room at a path that it returns.
func serve(t *testing.T, uid uint32) (*fakeRoom, string) {
	t.Helper()
	room, _, path := serveBy(t, uid)
	return room, path
}

func serveBy(t *testing.T, uid uint32) (*fakeRoom, *Server, string) {
	t.Helper()
	room := &fakeRoom{}
	for range numSockets {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		room.fds = append(room.fds, fd)
	}
	path := filepath.Join(t.TempDir(), "room.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Handler: room, UID: uid, Log: func(string) {}, Stored: filepath.Join(filepath.Dir(path), StoredFile)}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		closeAll(room.fds)
	})
	return room, s, path
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func inode(t *testing.T, fd uintptr) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func TestRequests(t *testing.T) {
	room, path := serve(t, uint32(os.Getuid()))
	c := dial(t, path)
	for range 2 { // all, again
		s, err := c.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range s.files() {
			if inode(t, (*f).Fd()) != inode(t, uintptr(room.fds[i])) {
				t.Errorf("%s is another socket than the room's", (*f).Name())
			}
		}
		s.Close()
	}
	f, err := c.DialSocket(8080)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := c.DialSocket(firewall.PortTCP); err == nil || !strings.Contains(err.Error(), "guard's own") {
		t.Errorf("a refusal of the room arrived as %v", err)
	}
	for range 2 { // the same one
		f, err := c.Listen(firewall.FirstEndpoint)
		if err != nil {
			t.Fatal(err)
		}
		if inode(t, f.Fd()) != inode(t, uintptr(room.fds[0])) {
			t.Error("another listener than the room's")
		}
		f.Close()
	}
	if _, err := c.Listen(80); err == nil || !strings.Contains(err.Error(), "not an endpoint's port") {
		t.Errorf("a refusal of the room arrived as %v", err)
	}
	want := []firewall.PortRange{{First: 22, Last: 22}, {First: 8000, Last: 8010}}
	if _, err := c.Redirect([]firewall.PortRange{want[1], want[0]}); err != nil || room.redirected() != "22,8000-8010" {
		t.Errorf("redirect: %v, %v", err, room.redirected())
	}
	if _, err := c.Redirect(nil); err != nil || room.redirected() != "" {
		t.Errorf("redirect to nothing: %v, %v", err, room.redirected())
	}
	if n, err := c.Counters(); err != nil || n != (Counters{1 << 40, 7, NFTables}) || n.Denied() != 1<<40+7 {
		t.Errorf("counters: %v, %v", n, err)
	}
}

func TestOneGuardAtATime(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid()))
	first := dial(t, path)
	if _, err := first.Sockets(); err != nil {
		t.Fatal(err)
	}
	second := dial(t, path)
	if _, err := second.Sockets(); err == nil || !strings.Contains(err.Error(), "another guard") {
		t.Errorf("a second guard got %v", err)
	}
	select {
	case <-second.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the second guard stays connected")
	}
	first.Close()
	// The place is free again as soon as the room has seen the end.
	deadline := time.Now().Add(5 * time.Second)
	for {
		if _, err := dial(t, path).Sockets(); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestOtherUsersAreRefused(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid())+1)
	if _, err := dial(t, path).Sockets(); err == nil || !strings.Contains(err.Error(), "must have uid") {
		t.Errorf("got %v", err)
	}
}

func TestEndOfRoomIsSeen(t *testing.T) {
	room, path := serve(t, uint32(os.Getuid()))
	_ = room
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "")
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{conn: conn.(*net.UnixConn), answers: make(chan answer, 1), done: make(chan struct{})}
	go c.read()
	select {
	case <-c.Done():
		t.Fatal("done before the end")
	case <-time.After(20 * time.Millisecond):
	}
	unix.Close(fds[1])
	select {
	case <-c.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("the end of the room was not seen")
	}
	if _, err := c.Counters(); err == nil {
		t.Error("a request after the end succeeded")
	}
	_ = path
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "room.sock")
	old, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil {
		t.Error("a file was taken for a stale socket")
	}
}

// TestGarbage: whatever a peer sends, the room answers with an error and goes
// on, and descriptors that it is sent are closed.
func TestGarbage(t *testing.T) {
	_, path := serve(t, uint32(os.Getuid()))
	before := openFiles(t)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"x", "sockets now", "dial", "dial 0", "dial 1,2", "dial 99999", "listen", "listen 0", "listen 600,601", "listen 0600", "listen 99999", "redirect ", "redirect 0", "redirect 3,2", "SOCKETS", "sockets\n", "\x00", strings.Repeat("redirect 1,", 500)} {
		if _, _, err := conn.WriteMsgUnix([]byte(s), unix.UnixRights(0, 1, 2), nil); err != nil {
			t.Fatalf("%.20q: %v", s, err)
		}
		data, _, err := receive(conn)
		if err != nil || !strings.HasPrefix(string(data), "error ") {
			t.Errorf("%.20q: %q, %v", s, data, err)
		}
	}
	// One that is too long ends the connection.
	if _, err := conn.Write([]byte(strings.Repeat("x", 2*maxPacket))); err != nil {
		t.Fatal(err)
	}
	receive(conn)
	conn.Close()
	deadline := time.Now().Add(5 * time.Second)
	for openFiles(t) > before {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors are open, %d before", openFiles(t), before)
		}
		time.Sleep(time.Millisecond)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func FuzzParseRequest(f *testing.F) {
	for _, s := range []string{"sockets", "dial 8080", "redirect", "redirect 22,8000-8010", "counters", "redirect 1-65535", "dial -1", "keep", "kept", "kept 1", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseRequest(data)
		if err == nil && string(r.encode()) != string(data) {
			t.Fatalf("%q became %q", data, r.encode())
		}
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte("ok"))
	f.Add([]byte("ok 1 2"))
	f.Add([]byte("error no"))
	f.Fuzz(func(t *testing.T, data []byte) {
		rest, err := parseAnswer(data)
		if err != nil {
			return
		}
		if c, err := parseCounters(rest); err == nil && c.Denied() < c.Denied4 && c.Denied6 == 0 {
			t.Fatal("impossible")
		}
	})
}

// TestAnyIP: a room of this kind says so, and sends a listener for each port.
func TestAnyIP(t *testing.T) {
	room, path := serve(t, uint32(os.Getuid()))
	room.be(func() { room.kind = AnyIP })
	for _, n := range []int{numSockets, numSockets - 1} {
		room.be(func() { room.fds = room.fds[:n] })
		c := dial(t, path)
		s, err := c.Sockets()
		if err != nil || s.Kind != AnyIP || s.Refused4 == nil || (s.Refused6 == nil) != (n < numSockets) || s.TCP != nil || s.NFLog != nil {
			t.Fatalf("%+v, %v", s, err)
		}
		s.Close()
		if n, err := c.Counters(); err != nil || n.Kind != AnyIP {
			t.Errorf("counters: %+v %v", n, err)
		}
		for i, o := range []Opened{
			{Ports: []uint16{22, 8000, 8001}, FDs: room.fds[:3]}, {}, {Taken: "a; b"},
			{Ports: []uint16{9}, FDs: room.fds[1:2], Taken: "port 10 is taken"},
		} {
			room.be(func() { room.open = o })
			got, err := c.Redirect(nil)
			var taken *TakenError
			if (err != nil) != (o.Taken != "") || errors.As(err, &taken) && taken.Text != o.Taken || len(got) != len(o.Ports) {
				t.Fatalf("%d: %v %v", i, got, err)
			}
			for j, l := range got {
				if l.Port != o.Ports[j] || inode(t, l.File.Fd()) != inode(t, uintptr(o.FDs[j])) {
					t.Errorf("%d: port %d", i, l.Port)
				}
				l.File.Close()
			}
		}
		room.be(func() { room.open = Opened{Ports: []uint16{22}, FDs: room.fds[:2]} })
		if got, err := c.Redirect(nil); err == nil {
			t.Errorf("a descriptor too many: %v", got)
		}
		c.Close()
		time.Sleep(10 * time.Millisecond)
	}
	room.be(func() { room.fds = room.fds[:3] })
	if _, err := dial(t, path).Sockets(); err == nil {
		t.Error("too few sockets were taken")
	}
}

func FuzzParseOpened(f *testing.F) {
	for _, s := range []string{"", "22", "22,8000-8010; port 9 is taken", "; x", "1-65535", "ok"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ports, taken, err := parseOpened(s)
		if err != nil {
			return
		}
		if len(ports) > MaxListeners {
			t.Fatalf("%d ports", len(ports))
		}
		a, err := parseAnswer([]byte(Opened{Ports: ports, Taken: taken}.encode()))
		if err != nil || a != s && taken != "" {
			t.Fatalf("%q became %q, %v", s, a, err)
		}
	})
}
