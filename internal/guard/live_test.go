package guard

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
)

// host speaks with the guard as the host does.
func (w *world) host(req control.Request, result any) error {
	w.Helper()
	c, err := net.Dial("unix", w.control())
	if err != nil {
		w.Fatal(err)
	}
	client := control.NewClient(c)
	defer client.Close()
	return client.Do(req, result)
}

func (w *world) change(req control.Request) (a control.Applied) {
	w.Helper()
	if err := w.host(req, &a); err != nil {
		w.Fatalf("%s: %v", req.Op, err)
	}
	return a
}

func (w *world) state() (s control.State) {
	w.Helper()
	if err := w.host(control.Request{Op: control.OpState}, &s); err != nil {
		w.Fatal(err)
	}
	return s
}

// liveFor adds live changes, as [liveChange] reads them.
func (w *world) liveFor(d time.Duration, changes ...string) control.Applied {
	w.Helper()
	r := control.Request{Op: control.OpChange, For: control.Duration(d)}
	for _, s := range changes {
		r.Changes = append(r.Changes, liveChange(w, s))
	}
	return w.change(r)
}

// resolve asks for a name from a room and returns the code of the answer.
func (w *world) resolve(room, name string) int {
	w.Helper()
	return w.ask(room, "udp", "10.0.0.1:53", name, dns.TypeA).Rcode
}

// carried opens a connection to an echo and shows that it is carried.
func (w *world) carried(room, to string) net.Conn {
	w.Helper()
	c := w.mustDial(room, "tcp", to)
	w.echoes(c)
	return c
}

func (w *world) echoes(c net.Conn) {
	w.Helper()
	c.SetDeadline(time.Now().Add(3 * time.Second))
	io.WriteString(c, "x")
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		w.Errorf("%s isn't carried: %v", c.RemoteAddr(), err)
	}
}

// cut waits for the end of a connection and wants it to be a reset.
func (w *world) cut(c net.Conn, within time.Duration) {
	w.Helper()
	c.SetDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, c)
	if !errors.Is(err, unix.ECONNRESET) {
		w.Errorf("%s: %v, want a reset", c.RemoteAddr(), err)
	}
}

// rules is the chain that redirects, as iptables-save prints it in a room.
func (w *world) rules(room string) string {
	w.Helper()
	var out []byte
	if err := w.rooms[room].ns.Do(func() (err error) { out, err = exec.Command("iptables-save", "-t", "nat").Output(); return err }); err != nil {
		w.Fatal(err)
	}
	return string(out)
}

// TestB27_LiveAllow: a port of a name opens, and at its end closes by itself:
// names, rules, and the connection that it had allowed.
func TestB27_LiveAllow(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "198.51.100.192/26:9000"))
	stays := w.carried("room", "198.51.100.200:9000")
	if _, err := w.dial("room", "tcp", testnet.SSH+":22"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("control: port 22 before: %v", err)
	}
	if code := w.resolve("room", "ssh.example.org"); code != dns.RcodeNameError {
		t.Fatalf("control: the name before: %d", code)
	}
	const last = 3 * time.Second
	start := time.Now()
	if a := w.liveFor(last, "ssh.example.org:22", "169.254.0.0/16:9000", "127.0.0.0/8:9000"); a.Live != 3 || a.Cut != 0 || a.Generation != 2 {
		t.Errorf("%+v", a)
	}
	w.resolve("room", "ssh.example.org")
	c := w.mustDial("room", "tcp", testnet.SSH+":22")
	br := bufio.NewReader(c)
	if line, err := br.ReadString('\n'); strings.TrimSpace(line) != testnet.SSHBanner {
		t.Fatalf("live port 22: %q %v", line, err)
	}
	w.refused("room", "169.254.169.254:9000") // the never-list holds (B31)
	w.refused("room", testnet.Allowed+":22")  // no name of that address has the port
	s := w.state()
	if len(s.Live) != 3 || s.Live[0].Rule.Target() != "ssh.example.org" || s.Live[0].Until.Sub(start).Round(time.Second/2) != last || s.Rooms[0].Connections != 2 || !s.Rooms[0].Served || s.Rooms[0].Refused == 0 {
		t.Errorf("%+v", s)
	}
	if s.Goroutines == 0 || s.Descriptors < 10 || s.HeapBytes == 0 || s.Digest != firewall.Digest(&w.policy) {
		t.Errorf("%+v", s)
	}
	c.SetDeadline(time.Now().Add(3 * last))
	if _, err := io.Copy(io.Discard, br); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("at its end: %v", err)
	}
	if d := time.Since(start); d < last || d > last+2*time.Second {
		t.Errorf("it was cut after %s", d)
	}
	// Connections are cut before the room is told its ports; the guard refuses
	// what comes in between.
	w.refused("room", testnet.SSH+":22")
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := w.dial("room", "tcp", testnet.SSH+":22"); errors.Is(err, unix.ECONNREFUSED) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the room itself doesn't refuse port 22: %v", err)
		}
	}
	if code := w.resolve("room", "ssh.example.org"); code != dns.RcodeNameError {
		t.Errorf("the name after: %d", code)
	}
	w.echoes(stays)
	if s := w.state(); len(s.Live) != 0 || s.Generation != 3 {
		t.Errorf("%+v", s)
	}
	for _, what := range []string{"began", "ended"} {
		w.guard.eventually(1, "a note", func(e event) bool {
			return e.Kind == "guard" && e.Verdict == "note" && e.Reason == "live-change" && e.Name == "ssh.example.org" && strings.HasSuffix(e.Rule, "allow ssh.example.org:22 "+what)
		})
	}
}

// TestB27_LiveDeny cuts what it names, by name and by range, and nothing else.
func TestB27_LiveDeny(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "second.example.org", "198.51.100.192/26:9000"))
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	tls := func(addr, name string) net.Conn {
		c, err := w.tls("room", addr+":443", name)
		if err != nil {
			t.Fatalf("control: %s: %v", name, err)
		}
		return c.NetConn()
	}
	first, second := tls(testnet.Allowed, "allowed.example.org"), tls("198.51.100.12", "second.example.org")
	echo, neighbour := w.carried("room", "198.51.100.200:9000"), w.carried("room", "198.51.100.201:9000")
	if a := w.liveFor(time.Hour, "deny allowed.example.org:1-65535"); a.Cut != 1 {
		t.Errorf("%+v", a)
	}
	w.cut(first, time.Second)
	if _, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil {
		t.Error("a denied name was carried")
	}
	// By the address that a name led to, too.
	if a := w.liveFor(time.Hour, "deny 198.51.100.12/32:1-65535", "deny 198.51.100.200/32:9000"); a.Cut != 2 {
		t.Errorf("%+v", a)
	}
	w.cut(second, time.Second)
	w.cut(echo, time.Second)
	w.echoes(neighbour)
	if a := w.change(control.Request{Op: control.OpChange, Reset: true}); a.Live != 0 {
		t.Errorf("%+v", a)
	}
	tls(testnet.Allowed, "allowed.example.org")
	tls("198.51.100.12", "second.example.org")
	w.carried("room", "198.51.100.200:9000")
}

// TestB27_PolicyReplaced: exactly what the new policy doesn't allow is cut; a
// transfer that it allows comes to its end.
func TestB27_PolicyReplaced(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org", "second.example.org", "198.51.100.192/26:9000"))
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	const size = 512 << 20
	download := func(addr, host string) (net.Conn, *bufio.Reader) {
		c := w.mustDial("room", "tcp", addr+":80")
		c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET /bytes/%d HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", size, host)
		br := bufio.NewReader(c)
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("control: %v %v", resp, err)
		}
		return c, br
	}
	_, kept := download(testnet.Allowed, "allowed.example.org")
	_, gone := download("198.51.100.12", "second.example.org")
	echo := w.carried("room", "198.51.100.200:9000")
	w.liveFor(time.Hour, "198.51.100.200/32:8000")
	live := w.carried("room", "198.51.100.200:8000")

	p := w.policy
	p.Rooms = restricted(t, "allowed.example.org", "ssh.example.org:22").Rooms
	a := w.change(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)})
	if a.Cut != 2 || a.Digest != firewall.Digest(&p) || a.Live != 1 {
		t.Errorf("%+v", a)
	}
	if n, err := io.Copy(io.Discard, kept); n != size || err != nil {
		t.Errorf("the transfer that is still allowed: %d bytes of %d, %v", n, size, err)
	}
	if n, err := io.Copy(io.Discard, gone); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the transfer that isn't: %d bytes, %v", n, err)
	}
	w.cut(echo, time.Second)
	w.echoes(live)
	// The room's rules are those of the new policy and the live change.
	want := string(firewall.NewRuleset(firewall.RulesetOptions{Ports: []firewall.PortRange{{First: 22, Last: 22}, {First: 8000, Last: 8000}}}).Text(firewall.V4))
	var lines []string
	for line := range strings.Lines(want) {
		if strings.HasPrefix(line, "-A WS_NAT") {
			lines = append(lines, line)
		}
	}
	if got := w.rules("room"); !strings.Contains(got, strings.Join(lines, "")) {
		t.Errorf("the rules aren't\n%s\nbut\n%s", strings.Join(lines, ""), got)
	}
	w.resolve("room", "ssh.example.org")
	ssh := w.mustDial("room", "tcp", testnet.SSH+":22")
	if line, err := bufio.NewReader(ssh).ReadString('\n'); strings.TrimSpace(line) != testnet.SSHBanner {
		t.Errorf("the new port: %q %v", line, err)
	}
	// What a running guard can't change changes nothing.
	p.Proxy = "http://proxy.example.org:3128"
	if err := w.host(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)}, &a); err == nil || !strings.Contains(err.Error(), "proxy") {
		t.Errorf("another proxy: %v", err)
	}
	if a := w.change(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&w.policy), Reset: true}); a.Live != 0 || a.Cut != 2 || a.Digest != firewall.Digest(&w.policy) {
		t.Errorf("%+v", a)
	}
	w.cut(live, time.Second)
	w.cut(ssh, time.Second)
	w.guard.eventually(2, "notes of the policy", func(e event) bool { return e.Kind == "guard" && e.Reason == "policy" })
}

// TestLearning: names are let through on 80, 443 and, by their pinned addresses,
// on other TCP ports, and are told apart in the events; deny lines, resolvers
// over HTTPS, the never-list and raw addresses hold. At its end all is closed.
func TestLearning(t *testing.T) {
	p := restricted(t, "allowed.example.org")
	p.Rooms[0].Deny = []firewall.Rule{rule(t, "denied.example.org:1-65535", 30)}
	other := p.Rooms[0]
	other.Room, other.Workers = "other", []string{"carol"}
	p.Rooms = append(p.Rooms, other)
	w := newWorld(t, p)
	w.in.Answer("new.example.net", testnet.A("198.51.100.40"))
	w.in.Answer("inside.example.net", testnet.A("10.1.2.3"))
	w.in.Answer("dns.google", testnet.A("198.51.100.41"))
	if code := w.resolve("room", "new.example.net"); code != dns.RcodeNameError {
		t.Fatalf("control: %d", code)
	}
	w.change(control.Request{Op: control.OpLearn, For: control.Duration(time.Hour), Rooms: []string{"room"}})
	if s := w.state(); len(s.Learning) != 1 || time.Until(s.Learning["room"]) < 59*time.Minute {
		t.Errorf("%+v", s.Learning)
	}
	if code := w.resolve("room", "new.example.net"); code != dns.RcodeSuccess {
		t.Errorf("the name: %d", code)
	}
	c, err := w.tls("room", "198.51.100.40:443", "new.example.net")
	if err != nil {
		t.Fatalf("443: %v", err)
	}
	if _, status, _ := get(w, w.mustDial("room", "tcp", "198.51.100.40:80"), "http://new.example.net/"); status != 200 {
		t.Errorf("80: %d", status)
	}
	tcp := w.carried("room", "198.51.100.40:9000")

	for _, name := range []string{"denied.example.org", "dns.google"} {
		if code := w.resolve("room", name); code != dns.RcodeNameError {
			t.Errorf("%s: %d", name, code)
		}
		if _, err := w.tls("room", "198.51.100.41:443", name); err == nil {
			t.Errorf("%s was carried", name)
		}
	}
	if r := w.ask("room", "udp", "10.0.0.1:53", "inside.example.net", dns.TypeA); len(addrs(r)) != 0 {
		t.Errorf("a private address was answered: %v", r)
	}
	w.refused("room", "198.51.100.42:9000")   // nobody's address
	w.refused("room", "169.254.169.254:9000") // and never this one
	w.refused("room", testnet.DNS+":9000")    // nor the resolver
	if _, err := w.dial("other", "tcp", "198.51.100.40:9000"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("the other room: %v", err)
	}
	if code := w.resolve("other", "new.example.net"); code != dns.RcodeNameError {
		t.Errorf("the other room: %d", code)
	}
	w.guard.eventually(1, "what was learned on 443", func(e event) bool {
		return e.Room == "room" && e.Verdict == "allow" && e.Reason == "learned" && e.Name == "new.example.net" && e.Port == 443
	})
	w.guard.eventually(1, "what was learned on 9000", func(e event) bool {
		return e.Verdict == "allow" && e.Reason == "learned" && e.Name == "new.example.net" && e.Port == 9000
	})

	if a := w.change(control.Request{Op: control.OpLearn, Rooms: []string{"room"}}); a.Cut < 2 {
		t.Errorf("%+v", a)
	}
	w.cut(tcp, time.Second)
	w.cut(c.NetConn(), time.Second)
	if _, err := w.dial("room", "tcp", "198.51.100.40:9000"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("after learning: %v", err)
	}
	if _, err := w.tls("room", "198.51.100.40:443", "new.example.net"); err == nil {
		t.Error("after learning the name is still carried")
	}
	w.guard.eventually(2, "notes", func(e event) bool { return e.Kind == "guard" && e.Room == "room" && e.Reason == "learning" })

	w.change(control.Request{Op: control.OpLearn, For: control.Duration(2 * time.Second)})
	s := w.state()
	if len(s.Learning) != 2 {
		t.Errorf("all rooms: %+v", s.Learning)
	}
	for end := time.Now().Add(4 * time.Second); len(s.Learning) > 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s = w.state()
	}
	if len(s.Learning) != 0 {
		t.Errorf("after two seconds: %+v", s.Learning)
	}
	w.guard.eventually(2, "ends of learning", func(e event) bool { return e.Reason == "learning" && e.Room == "other" })
}

// TestB21_LiveChangesEndWithTheGuard: another guard knows nothing of them, and a
// room that it takes over is closed again.
func TestB21_LiveChangesEndWithTheGuard(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	w.liveFor(time.Hour, "198.51.100.192/26:9000")
	w.change(control.Request{Op: control.OpLearn, For: control.Duration(time.Hour)})
	open := w.carried("room", "198.51.100.200:9000")
	w.guard.kill()
	if _, err := open.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("a connection outlived the guard: %v", err)
	}
	waiting := w.mustDial("room", "tcp", "198.51.100.200:9000") // the room still leads there
	w.startGuard()                                              // over the dead one's socket
	w.cut(waiting, time.Second)
	if _, err := w.dial("room", "tcp", "198.51.100.200:9000"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("with another guard: %v", err)
	}
	if s := w.state(); len(s.Live) != 0 || len(s.Learning) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestB21_RoomIsToldAgain: a room that was made anew has the policy's ports and
// the live ones again, also when they change while it is away, and a change in
// the middle of a hand-over isn't lost.
func TestB21_RoomIsToldAgain(t *testing.T) {
	w := newWorld(t, restricted(t, "198.51.100.192/26:9000"))
	w.liveFor(time.Hour, "198.51.100.192/26:8000")
	for i := range 20 {
		w.rooms["room"].kill()
		ns, err := testnet.NewNS()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ns.Close() })
		port := []string{"8001", "8005"}[i%2]
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			var a control.Applied
			if err := w.host(control.Request{Op: control.OpChange, Reset: true, For: control.Duration(time.Hour), Changes: []firewall.Live{
				{Rule: firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.192/26"), Ports: ports(t, port+",8000")}},
			}}, &a); err != nil && !strings.Contains(err.Error(), "the room has ended") {
				t.Error(err)
			}
		}()
		w.startRoom(w.policy.Rooms[0], ns)
		<-done
		for _, p := range []string{"9000", "8000", port} {
			var err error
			for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
				if _, err = w.dial("room", "tcp", "198.51.100.200:"+p); err == nil {
					break // until the guard has come back
				}
			}
			if err != nil {
				t.Fatalf("round %d: port %s: %v\n%s", i, p, err, w.rules("room"))
			}
			w.carried("room", "198.51.100.200:"+p)
		}
		if got := w.rules("room"); strings.Count(got, "--to-ports 535") != len(firewall.NormalizePorts(ports(t, "9000,8000,"+port))) {
			t.Fatalf("round %d: other ports than %s:\n%s", i, port, got)
		}
	}
}

func ports(t testing.TB, s string) []firewall.PortRange {
	t.Helper()
	p, err := firewall.ParsePorts(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestB22_ControlIsTheHosts: the guard's user and root reach the control socket;
// others don't, not even where a file system would let them. The verb connect
// ends with its input, and answers first.
func TestB22_ControlIsTheHosts(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	connect := func(uid uint32, ask string) (string, string, error) {
		cmd := exec.Command(w.binary(), w.control())
		cmd.Env = []string{"GUARD_TEST_ROLE=connect"}
		cmd.SysProcAttr = credential(uid)
		cmd.Stdin = strings.NewReader(ask)
		var out, problem bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problem
		err := w.rooms["room"].ns.Start(cmd) // a network namespace is no fence for a path
		if err == nil {
			err = cmd.Wait()
		}
		return out.String(), problem.String(), err
	}
	const state = `{"op":"state"}` + "\n"
	for _, uid := range []uint32{0, guardUID} {
		if out, problem, err := connect(uid, state+state); err != nil || strings.Count(out, `{"result":{"workshop":"test"`) != 2 {
			t.Errorf("uid %d: %q %q %v", uid, out, problem, err)
		}
	}
	if _, problem, err := connect(1000, state); err == nil || !strings.Contains(problem, "permission denied") {
		t.Errorf("uid 1000: %q %v", problem, err)
	}
	if info, err := os.Stat(w.control()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	w.openControl()
	if out, _, _ := connect(1000, state); out != "" {
		t.Errorf("uid 1000, in an open directory: %q", out)
	}
	if out, _, err := connect(0, ""); out != "" || err != nil {
		t.Errorf("no input: %q %v", out, err)
	}
	// It is no socket of a room's, and of no name that every namespace has.
	if entries := w.sockets(); len(entries) != 1 || entries[0] != "room.sock" {
		t.Errorf("beside the room's socket there are %v", entries)
	}
}
