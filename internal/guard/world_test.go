package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/panics"
	"github.com/llmdo/workshop/internal/made"
	roominit "github.com/llmdo/workshop/internal/room"
)

// The test binary is also the room and the guard, each a process of its own in
// its own network namespace, as in their containers.
func TestMain(m *testing.M) {
	switch os.Getenv("GUARD_TEST_ROLE") {
	case "panicking guard":
		for range panics.Limit {
			panics.Serve(func() { panic("a test's panic") }, func() {})
		}
		fallthrough
	case "guard with short leases", "guard that panics with a value", "guard":
		switch os.Getenv("GUARD_TEST_ROLE") {
		case "guard with short leases":
			leaseTime = 2 * time.Second
		case "guard that panics with a value":
			taken = panicWith
		}
		os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr))
	case "room":
		os.Exit(roominit.Main(os.Args[1:], os.Stdout, os.Stderr))
	case "room by AnyIP":
		os.Exit(anyIPRoom())
	case "outlet":
		os.Exit(outlet.Main(os.Args[1:], os.Stdout, os.Stderr))
	case "relay":
		os.Exit(testcarrier.Main(os.Args[1:]))
	case "connect":
		os.Exit(control.Connect(os.Args[1], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// guardUID is who the guard is in its container.
const guardUID = 65532

// world is a test internet, a namespace for the guard that is joined to it, and
// rooms.
type world struct {
	testing.TB
	in      *testnet.Internet
	outside *testnet.NS
	dir     string // sockets/, policy/, and the test binary
	policy  firewall.Policy
	rooms   map[string]*process
	guard   *process
	// extra files of the next process, from descriptor 3 on
	extra []*os.File
	// role of the guard, if it isn't "guard"
	role string
	env  []string // more variables of processes
	// stderr of processes; nil: this one's
	stderr io.Writer
	// anyIP makes rooms as on a kernel without netfilter
	anyIP bool
	// byCarrier has workers in namespaces of their own, with a relay to an outlet in the room
	byCarrier   bool
	outlet      *process // the last room's
	startOutlet func()   // again
	// groups, by role, are where processes are started
	groups map[string]*testutil.MemoryGroup
}

// newWorld makes the world and starts the rooms of the policy and the guard.
func newWorld(t testing.TB, p firewall.Policy) *world {
	t.Helper()
	w := buildWorld(t, p)
	w.startRooms()
	w.startGuard()
	return w
}

func buildWorld(t testing.TB, p firewall.Policy) *world {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "needs root (network namespaces)")
	outside, err := testnet.NewNS()
	if err != nil {
		testutil.Require(t, false, "network namespaces: "+err.Error())
	}
	t.Cleanup(func() { outside.Close() })
	w := &world{TB: t, outside: outside, rooms: map[string]*process{}, anyIP: os.Getenv("GUARD_TEST_ROOMS") == "anyip", byCarrier: os.Getenv("GUARD_TEST_ROOMS") == "carrier"}
	w.in = testnet.New(t, testnet.Options{Near: outside})
	w.in.IPv6 = w.in.IPv6 && !w.byCarrier
	if p.Resolvers == nil {
		p.Resolvers = []string{testnet.DNS}
	}
	p.Version, p.Workshop = firewall.PolicyVersion, "test"
	w.policy = p
	w.dir, err = os.MkdirTemp("", "guard-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(w.dir) })
	for _, d := range []string{"", "sockets", "policy"} {
		os.MkdirAll(filepath.Join(w.dir, d), 0o755)
		os.Chmod(filepath.Join(w.dir, d), 0o755)
	}
	// As the guard's tmpfs is.
	os.Mkdir(filepath.Dir(w.control()), 0o700)
	os.Chown(filepath.Dir(w.control()), guardUID, guardUID)
	if err := os.Link(os.Args[0], w.binary()); err != nil {
		data, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(w.binary(), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.writePolicy()
	return w
}

// writePolicy writes the policy that the next guard starts with.
func (w *world) writePolicy() {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(&w.policy), 0o644); err != nil {
		w.Fatal(err)
	}
}

// control is the path of the guard's control socket.
func (w *world) control() string { return filepath.Join(w.dir, "control", "control.sock") }

func (w *world) binary() string { return filepath.Join(w.dir, "workshop-init") }

func (w *world) startRooms() {
	w.Helper()
	for _, p := range w.policy.Rooms {
		ns, err := testnet.NewNS()
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { ns.Close() })
		w.startRoom(p, ns)
	}
}

func (w *world) startRoom(p firewall.RoomPolicy, ns *testnet.NS) {
	w.Helper()
	args := []string{"--name", p.Room, "--dir", filepath.Join(w.dir, "sockets")}
	if p.Mode == firewall.Open {
		args = append(args, "--open")
	}
	role := "room"
	if w.anyIP {
		role = "room by AnyIP"
	}
	if w.byCarrier {
		args = append(args, "--outlet")
	}
	w.rooms[p.Room] = w.start(ns, role, nil, args...)
	w.rooms[p.Room].waitReady()
	if w.byCarrier {
		w.carry(p.Room)
	}
}

func (w *world) startGuard(args ...string) {
	w.Helper()
	w.launchGuard(args...)
	w.guard.waitReady()
}

func (w *world) launchGuard(args ...string) {
	w.Helper()
	if w.role == "" {
		w.role = "guard"
	}
	args = append([]string{"--policy", filepath.Join(w.dir, "policy"), "--sockets", filepath.Join(w.dir, "sockets"), "--resolv-conf", "/nonexistent", "--control", w.control()}, args...)
	w.guard = w.start(w.outside, w.role, &syscall.Credential{Uid: guardUID, Gid: guardUID}, args...)
}

// process is a room or a guard.
type process struct {
	testing.TB
	ns    *testnet.NS
	cmd   *exec.Cmd
	ready chan string // the READY or FAILED line
	done  chan struct{}

	mu    sync.Mutex
	lines []event
}

// event is a line of the guard's output as a reader of it sees it.
type event struct {
	Room, Kind, Name, Address, Protocol, Verdict, Reason, Rule, Suggest string
	Workers                                                             []string
	Port, Count                                                         int
	BytesUp                                                             int `json:"bytes_up"`
	BytesDown                                                           int `json:"bytes_down"`
	raw                                                                 string
}

func (w *world) start(ns *testnet.NS, role string, cred *syscall.Credential, args ...string) *process {
	w.Helper()
	cmd := exec.Command(w.binary(), args...)
	// In tests with -race a guard ends where it races, and its test fails.
	cmd.Env = append([]string{"GUARD_TEST_ROLE=" + role, "GORACE=halt_on_error=1"}, w.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	cmd.Stderr = os.Stderr
	if w.stderr != nil {
		cmd.Stderr = w.stderr
	}
	cmd.ExtraFiles, w.extra = w.extra, nil
	r, wr, err := os.Pipe()
	if err != nil {
		w.Fatal(err)
	}
	cmd.Stdout = wr
	begin := cmd.Start
	if g := w.groups[role]; g != nil {
		begin = func() error { return g.Start(cmd) }
	}
	if err := ns.Do(begin); err != nil {
		w.Fatal(err)
	}
	wr.Close()
	p := &process{TB: w.TB, ns: ns, cmd: cmd, ready: make(chan string, 1), done: make(chan struct{})}
	go p.read(r)
	go func() { cmd.Wait(); close(p.done) }()
	w.Cleanup(p.kill)
	return p
}

func (p *process) read(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		line := sc.Text()
		if strings.HasPrefix(line, made.Prefix) {
			continue
		}
		if !strings.HasPrefix(line, "{") {
			select {
			case p.ready <- line:
			default:
			}
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.Errorf("not JSON: %s", line)
		}
		e.raw = line
		p.mu.Lock()
		p.lines = append(p.lines, e)
		p.mu.Unlock()
	}
}

func (p *process) waitReady() {
	p.Helper()
	select {
	case line := <-p.ready:
		if line != "READY" {
			p.Fatalf("said %q, not READY", line)
		}
	case <-time.After(10 * time.Second):
		p.Fatal("not ready after 10 s")
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// count adds the counts of the events that match.
func (p *process) count(match func(event) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, e := range p.lines {
		if match(e) {
			n += e.Count
		}
	}
	return n
}

// eventually waits until the matching events' counts add up to want, and stay.
func (p *process) eventually(want int, what string, match func(event) bool) {
	p.Helper()
	end := time.Now().Add(4 * time.Second)
	for p.count(match) < want && time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
	}
	if n := p.count(match); n != want {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.lines {
			p.Logf("event: %+v", e)
		}
		p.Errorf("%s: counted %d, want %d", what, n, want)
	}
}

// dial connects from inside a room, as a worker does.
func (w *world) dial(room, network, addr string) (net.Conn, error) {
	var c net.Conn
	err := w.rooms[room].ns.Do(func() (err error) {
		c, err = net.DialTimeout(network, addr, 5*time.Second)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(8 * time.Second))
	w.Cleanup(func() { c.Close() })
	return c, nil
}

// refused checks that a connection fails, at once and with an error: by the
// kernel at connect, or by the guard right after it.
func (w *world) refused(room, addr string) {
	w.Helper()
	start := testutil.Now()
	c, err := w.dial(room, "tcp", addr)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	if err == nil || err == io.EOF || os.IsTimeout(err) {
		w.Errorf("%s: %v, not refused", addr, err)
	}
	if d := testutil.Since(start); d > time.Second {
		w.Errorf("%s: refused after %s", addr, d)
	}
}

// listenOutside listens on an address of the test internet until the test ends.
func (w *world) listenOutside(addr string) net.Listener {
	w.Helper()
	var l net.Listener
	if err := w.in.NS().Do(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	return l
}

func (w *world) mustDial(room, network, addr string) net.Conn {
	w.Helper()
	c, err := w.dial(room, network, addr)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// ask sends a DNS query from a room to whatever server.
func (w *world) ask(room, network, server, name string, qtype uint16) *dns.Msg {
	w.Helper()
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	m.SetEdns0(1232, false)
	r, err := w.exchange(room, network, server, m)
	if err != nil {
		w.Fatalf("%s %s @%s: %v", name, dns.TypeToString[qtype], server, err)
	}
	return r
}

func (w *world) exchange(room, network, server string, m *dns.Msg) (*dns.Msg, error) {
	w.Helper()
	c := &dns.Conn{Conn: w.mustDial(room, network, server), UDPSize: 4096}
	defer c.Close()
	if err := c.WriteMsg(m); err != nil {
		return nil, err
	}
	return c.ReadMsg()
}

// addrs returns the addresses of an answer.
func addrs(m *dns.Msg) (out []string) {
	for _, rr := range m.Answer {
		switch v := rr.(type) {
		case *dns.A:
			out = append(out, v.A.String())
		case *dns.AAAA:
			out = append(out, v.AAAA.String())
		}
	}
	return out
}

// Policies for tests.

func allow(t testing.TB, lines ...string) []firewall.Rule {
	t.Helper()
	var out []firewall.Rule
	for i, l := range lines {
		out = append(out, rule(t, l, i+10))
	}
	return out
}

// rule reads "host", "host:port", "cidr:port", with " private" behind it.
func rule(t testing.TB, s string, line int) firewall.Rule {
	t.Helper()
	r := firewall.Rule{Line: fmt.Sprintf("workshop.yaml:%d", line)}
	s, r.Private = strings.CutSuffix(s, " private")
	host, ports := s, "80,443"
	if i := strings.LastIndex(s, ":"); i > 0 && !strings.HasSuffix(s[:i], ":") {
		host, ports = s[:i], s[i+1:]
	}
	var err error
	if r.Ports, err = firewall.ParsePorts(ports); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(host, "/") {
		r.CIDR = netip.MustParsePrefix(host)
	} else if r.Host, err = firewall.ParseHostPattern(host); err != nil {
		t.Fatal(err)
	}
	return r
}

func restricted(t testing.TB, lines ...string) firewall.Policy {
	t.Helper()
	return firewall.Policy{Rooms: []firewall.RoomPolicy{{
		Room: "room", Mode: firewall.Restricted, Workers: []string{"alice", "bob"}, Allow: allow(t, lines...),
	}}}
}

// openControl gives everybody the control socket, as far as files go.
func (w *world) openControl() {
	w.Helper()
	if err := errors.Join(os.Chmod(filepath.Dir(w.control()), 0o755), os.Chmod(w.control(), 0o666)); err != nil {
		w.Fatal(err)
	}
}

// sockets lists the directory that rooms and guard share.
func (w *world) sockets() (names []string) {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, "sockets"))
	if err != nil {
		w.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func credential(uid uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}
