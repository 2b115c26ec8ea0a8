package guard

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// canary is the secret of these tests.
const canary = "Bearer canary-4f1e2d"

var keyLine = lease.Line{Room: "room", At: "api", Host: "allowed.example.org", Port: 443, Credential: "key"}

// keyPolicy has the endpoint of apiPolicy with a credential, in two rooms.
func keyPolicy(t testing.TB) firewall.Policy {
	p := restricted(t, "**.example.org:22,80,443,8443")
	line := at(t, "api 600 allowed.example.org", "GET,HEAD /repos/**", "POST /repos/acme/app/pulls", "GET /stream")
	line.Endpoint.Credential = "key"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, line)
	p.Rooms = append(p.Rooms, firewall.RoomPolicy{Room: "other", Mode: firewall.Restricted, Workers: []string{"eve"}, Allow: []firewall.Rule{line}})
	return p
}

// hostBroker is a broker of the test's own.
type hostBroker struct {
	*world
	c io.ReadWriteCloser
	r *lease.Reader
	l []lease.Line // that the guard said last
}

// attach attaches and reads the lines.
func (w *world) attach() (b *hostBroker, lines []lease.Line) {
	w.Helper()
	c, err := net.Dial("unix", w.control())
	if err != nil {
		w.Fatal(err)
	}
	b = &hostBroker{world: w}
	if b.c, err = control.NewClient(c).Attach(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { b.c.Close() })
	b.r = lease.NewReader(b.c)
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	return b, b.lines()
}

func (b *hostBroker) lines() []lease.Line {
	b.Helper()
	m, err := b.r.FromGuard()
	l, ok := m.(*lease.Lines)
	if err != nil || !ok {
		b.Fatalf("%+v, %v, want lines", m, err)
	}
	b.l = l.Lines
	return l.Lines
}

// full is a line with the rule that the guard's has; of another one, with none of its.
func (b *hostBroker) full(l lease.Line) lease.Line {
	for _, x := range b.l {
		l.Rule = x.Rule
		if l == x {
			return x
		}
	}
	l.Rule = "0000000000000000"
	return l
}

// say sends a message; there is no answer, so it waits a little.
func (b *hostBroker) say(m any) {
	b.Helper()
	if m, ok := m.(*lease.Lease); ok && m.Rule == "" {
		m.Line = b.full(m.Line)
	}
	if err := lease.Write(b.c, m); err != nil {
		b.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
}

func (b *hostBroker) lease(generation uint64, value string) {
	b.Helper()
	b.say(&lease.Lease{Line: keyLine, Generation: generation, Header: "Authorization", Value: lease.Value(value)})
}

const getRepos = "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n"

// forget waits for the last packets of what has ended, and forgets what arrived.
func (w *world) forget() {
	time.Sleep(200 * time.Millisecond)
	w.in.Reset()
}

// silent checks that nothing arrived.
func (w *world) silent(what string) {
	w.Helper()
	if c := w.in.Counts(); len(c.Requests) > 0 || len(c.Conns) > 0 || len(c.Queries) > 0 || len(c.Packets) > 0 {
		w.Errorf("%s: arrived: %+v", what, c)
	}
}

// TestB32_Credential: the guard adds the value, whatever the request's headers are (attacks
// 7 and 8), asks for no compression (19), and takes out of responses what would stay.
func TestB32_Credential(t *testing.T) {
	w := apiWorld(t, keyPolicy(t))
	b, lines := w.attach()
	here, other := keyLine, keyLine
	here.Rule = lease.RuleDigest(w.policy.Rooms[0].Allow[len(w.policy.Rooms[0].Allow)-1])
	other.Room, other.Rule = "other", here.Rule
	if diff := cmp.Diff([]lease.Line{other, here}, lines); diff != "" {
		t.Error(diff)
	}
	b.lease(1, canary)
	c := w.mustDial("room", "tcp", apiAddr)
	br := bufio.NewReader(c)
	const host = " HTTP/1.1\r\nHost: 127.0.0.1:600\r\n"
	basic := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for i, request := range []string{
		"GET /repos/a" + host,
		"GET /repos/a" + host + "Connection: authorization, accept-encoding\r\nAccept-Encoding: gzip\r\n",
		"GET /repos/a" + host + "Authorization: Bearer workshop\r\n",
		"GET /repos/a" + host + "aUTHORIZATION: token workshop\r\n",
		"GET /repos/a" + host + "Authorization: Basic " + basic("workshop:x") + "\r\n",
		"GET /repos/a" + host + "Authorization: basic " + basic("x-access-token:workshop") + "\r\n",
		"GET /repos/a" + host + "Authorization: workshop\r\n",
		"POST /repos/acme/app/pulls" + host + "Content-Length: 3\r\n",
		"POST /repos/acme/app/pulls" + host + "Transfer-Encoding: chunked\r\n",
	} {
		body := ""
		if strings.Contains(request, "Content-Length") {
			body = "abc"
		} else if strings.Contains(request, "chunked") {
			body = "3\r\nabc\r\n0\r\n\r\n"
		}
		io.WriteString(c, request+"\r\n"+body)
		e, status, text := readEcho(w, br, nil)
		if status != 200 || !cmp.Equal(e.Header["Authorization"], []string{canary}) || !cmp.Equal(e.Header["Accept-Encoding"], []string{"identity"}) {
			t.Errorf("request %d: %d %s", i, status, text)
		}
	}
	if n := w.in.Conns(testnet.Allowed, 443) + w.in.Conns(testnet.Allowed6, 443); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	b.lease(1, canary) // renewed
	for i, x := range []struct {
		generation uint64
		value      string
		conns      int
	}{{1, canary, 1}, {2, "Bearer second", 2}, {2, "Bearer third", 3}} {
		b.lease(x.generation, x.value)
		io.WriteString(c, "GET /repos/a"+host+"\r\n")
		e, _, text := readEcho(w, br, nil)
		if n := w.in.Conns(testnet.Allowed, 443) + w.in.Conns(testnet.Allowed6, 443); n != x.conns || e.Header.Get("Authorization") != x.value {
			t.Errorf("21: value %d: %d connections, want %d: %s", i, n, x.conns, text)
		}
	}
	b.say(&lease.Lease{Line: keyLine, Generation: 4, Header: "X-Api-Key", Value: lease.Value("k")})
	io.WriteString(c, "GET /repos/a"+host+"Authorization: Bearer workshop\r\nX-Api-Key: workshop\r\n\r\n")
	if e, _, text := readEcho(w, br, nil); e.Header.Get("X-Api-Key") != "k" || e.Header.Get("Authorization") != "" {
		t.Errorf("another header: %s", text)
	}
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for _, h := range []string{"Set-Cookie", "Clear-Site-Data", "Alt-Svc", "Refresh", "X-Kept"} {
			rw.Header().Set(h, "x")
		}
	}))
	w.wait(func() bool { resp, _ := w.send(apiAddr, getRepos+"\r\n"); return resp.Header.Get("X-Kept") != "" })
	resp, _ := w.send(apiAddr, getRepos+"\r\n")
	for _, h := range []string{"Set-Cookie", "Clear-Site-Data", "Alt-Svc", "Refresh"} {
		if resp.Header.Get(h) != "" {
			t.Errorf("the response has %s", h)
		}
	}
}

// wait waits for a condition.
func (w *world) wait(f func() bool) {
	w.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("it doesn't come")
		}
	}
}

// TestB32_WithoutALease: no packet leaves before the value is there, in another room that
// hasn't it (attacks 5 and 20), when its time is over, and when broker or guard were killed
// (50). What streams already goes on when the time is over.
func TestB32_WithoutALease(t *testing.T) {
	w := buildWorld(t, keyPolicy(t))
	w.role = "guard with short leases"
	w.policy.Roots = [][]byte{w.root()}
	w.writePolicy()
	w.startRooms()
	w.startGuard()
	closed := func(what string) {
		t.Helper()
		w.forget()
		resp, body := w.send(apiAddr, getRepos+"\r\n")
		if resp.StatusCode != 503 || resp.Header.Get("X-Workshop-Deny") != "credential" || !strings.Contains(body, "`workshop credential test key`") || !strings.Contains(body, "`workshop up`") {
			t.Errorf("%s: %s %s", what, resp.Status, body)
		}
		w.silent(what)
	}
	closed("nobody attached")
	b, _ := w.attach()
	closed("attached")
	foreign := keyLine
	foreign.Host = "second.example.org"
	b.say(&lease.Lease{Line: foreign, Generation: 1, Header: "Authorization", Value: lease.Value(canary)})
	closed("for another host")
	wider := b.full(keyLine)
	wider.Rule = "0000000000000000"
	b.say(&lease.Lease{Line: wider, Generation: 1, Header: "Authorization", Value: lease.Value(canary)})
	closed("for other requests")
	b.lease(1, canary)
	if resp, body := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 200 {
		t.Fatalf("%s %s", resp.Status, body)
	}
	w.forget()
	c := w.mustDial("other", "tcp", apiAddr)
	io.WriteString(c, getRepos+"\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 503 {
		t.Errorf("another room: %v %v", resp, err)
	}
	w.silent("another room")

	release := make(chan struct{})
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, "begun\n")
		rw.(http.Flusher).Flush()
		<-release
		io.WriteString(rw, "ended\n")
	}))
	b.lease(1, canary)
	c = w.mustDial("room", "tcp", apiAddr)
	io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n")
	br := bufio.NewReader(c)
	for line := ""; line != "begun\n"; {
		var err error
		if line, err = br.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	b.c.Close()
	time.Sleep(2500 * time.Millisecond)
	closed("the broker was killed, and the time is over")
	close(release)
	if rest, err := io.ReadAll(br); err != nil || !strings.Contains(string(rest), "ended") {
		t.Errorf("what streamed: %q %v", rest, err)
	}
	b, _ = w.attach()
	b.lease(1, canary)
	w.guard.kill()
	w.startGuard()
	closed("another guard")
	w.guard.eventually(1, "that the credential isn't there", func(e event) bool {
		return e.Kind == "endpoint" && e.Verdict == "deny" && e.Reason == "credential" && e.Name == "allowed.example.org" && e.Rule == "workshop.yaml:600"
	})
}

// TestB33_OwnCredentials are attacks 6, 8, 16 and 49: a worker's own credential beside the
// line's is refused, and so is what would smuggle one; the host hears nothing.
func TestB33_OwnCredentials(t *testing.T) {
	w := apiWorld(t, keyPolicy(t))
	b, _ := w.attach()
	b.lease(1, canary)
	basic := base64.StdEncoding.EncodeToString([]byte("me:own"))
	for _, x := range []struct{ name, header string }{
		{"bearer", "Authorization: Bearer own\r\n"}, {"mixed case", "aUtHoRiZaTiOn: Bearer own\r\n"}, {"basic", "Authorization: Basic " + basic + "\r\n"},
		{"doubled", "Authorization: Bearer workshop\r\nAuthorization: Bearer workshop\r\n"}, {"two in one", "Authorization: Bearer workshop, Bearer own\r\n"},
		{"the dummy and more", "Authorization: Bearer workshop own\r\n"}, {"empty", "Authorization:\r\n"}, {"by Connection", "Connection: authorization\r\nAuthorization: Bearer own\r\n"},
		{"a cookie", "Cookie: session=workshop\r\n"}, {"x-api-key", "x-api-key: own\r\n"}, {"x_api_key", "x_api_key: own\r\n"}, {"x-goog-api-key", "X-Goog-Api-Key: own\r\n"},
		{"private-token", "PRIVATE-TOKEN: own\r\n"}, {"amz", "X-Amz-Security-Token: own\r\n"}, {"proxy", "Proxy-Authorization: Basic " + basic + "\r\n"},
		{"a blank before the colon", "Authorization : Bearer own\r\n"}, {"a folded line", "X: a\r\n Authorization: Bearer own\r\n"}, {"16: a bare LF", "X: a\nAuthorization: Bearer own\r\n"}, {"16: a bare CR", "X: a\rAuthorization: Bearer own\r\n"},
	} {
		t.Run(x.name, func(t *testing.T) {
			resp, body := w.send(apiAddr, getRepos+x.header+"\r\n")
			if resp.StatusCode != 400 || strings.Contains(body, "canary") {
				t.Errorf("%s %s", resp.Status, body)
			}
			if x.name == "bearer" && (!strings.Contains(body, "remove the header") || !strings.Contains(body, `"workshop"`)) {
				t.Errorf("what to do: %s", body)
			}
		})
	}
	for _, query := range []string{"access_token=x", "key=x", "X-Amz-Signature=x"} {
		if resp, body := w.send(apiAddr, strings.Replace(getRepos, "/repos/a", "/repos/a?"+query, 1)+"\r\n"); resp.StatusCode != 400 {
			t.Errorf("%s: %s %s", query, resp.Status, body)
		}
	}
	// Attack 18: that a host echoes can't be prevented; what echoes isn't among the requests.
	if resp, body := w.send(apiAddr, strings.Replace(getRepos, "/repos/a", "/echo", 1)+"\r\n"); resp.StatusCode != 403 || strings.Contains(body, "canary") {
		t.Errorf("18: %s %s", resp.Status, body)
	}
	slow := w.mustDial("room", "tcp", apiAddr)
	io.WriteString(slow, getRepos) // without its end
	time.Sleep(200 * time.Millisecond)
	w.silent("in all")
	if resp, body := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 200 {
		t.Errorf("beside a slow head: %s %s", resp.Status, body)
	}
}

// TestB27_Credential: revoking cuts what runs within a second, and so does a policy that
// takes the credential away; the broker hears of it.
func TestB27_Credential(t *testing.T) {
	w := apiWorld(t, keyPolicy(t))
	b, _ := w.attach()
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	stream := func(generation uint64) net.Conn {
		t.Helper()
		b.lease(generation, canary)
		c := w.mustDial("room", "tcp", apiAddr)
		io.WriteString(c, "GET /stream HTTP/1.1\r\nHost: 127.0.0.1:600\r\n\r\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("%q %v", line, err)
		}
		return c
	}
	old, now := stream(1), stream(2)
	b.say(&lease.Revoke{Credential: "other"})
	b.say(&lease.Revoke{Credential: "key"})
	w.cut(old, 900*time.Millisecond)
	w.cut(now, 900*time.Millisecond)
	w.forget()
	if resp, _ := w.send(apiAddr, getRepos+"\r\n"); resp.StatusCode != 503 {
		t.Errorf("after it: %s", resp.Status)
	}
	w.silent("after it")
	for i, change := range []func(*firewall.Endpoint){
		func(e *firewall.Endpoint) { e.Credential = "another" },
		func(e *firewall.Endpoint) { e.Credential = "" },
	} {
		p := keyPolicy(t)
		p.Roots = w.policy.Roots
		w.replace(p)
		b.lines()
		c := stream(uint64(3 + i))
		p = keyPolicy(t)
		p.Roots = w.policy.Roots
		change(&p.Rooms[0].Allow[len(p.Rooms[0].Allow)-1].Endpoint)
		if a := w.replace(p); a.Cut != 1 {
			t.Errorf("change %d: %+v", i, a)
		}
		w.cut(c, 900*time.Millisecond)
		before := b.full(keyLine)
		for _, l := range b.lines() {
			if l == before {
				t.Errorf("change %d: the broker hears of %+v", i, l)
			}
		}
	}
}
