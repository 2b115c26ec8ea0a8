package guard

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/schemas"
)

// secret stands wherever a program may put something that is nobody's business:
// in no event may it appear (P5).
const secret = "s3cr3t-t0ken"

// TestAllowedEvents is B28 for what was let through: one event when a connection
// was dialled, one when it ended, with the bytes that it carried, and nothing of
// what was said in it.
func TestAllowedEvents(t *testing.T) {
	p := restricted(t, "allowed.example.org", "ssh.example.org:22", "198.51.100.192/26:9000")
	p.Publish = []firewall.Publish{{Room: "room", Listen: 20000, Target: 8080, Worker: "alice"}}
	w := newWorld(t, p)
	at := func(kind, verdict, name, addr string, port int, rule string) func(event) bool {
		return func(e event) bool {
			if e.Kind != kind || e.Verdict != verdict || e.Name != name || e.Port != port || e.Rule != rule || e.Protocol != "tcp" || e.Suggest != "" {
				return false
			}
			six := map[string]string{testnet.Allowed: testnet.Allowed6, testnet.SSH: testnet.SSH6}[addr]
			return e.Address == addr || w.in.IPv6 && e.Address == six
		}
	}
	both := func(n int, kind, name, addr string, port int, rule string) {
		t.Helper()
		for _, verdict := range []string{"allow", "end"} {
			w.guard.eventually(n, verdict+" "+kind+" "+name, at(kind, verdict, name, addr, port, rule))
		}
	}
	bytes := func(kind string, port int) (up, down int) {
		w.guard.mu.Lock()
		defer w.guard.mu.Unlock()
		for _, e := range w.guard.lines {
			if e.Kind == kind && e.Port == port {
				up, down = up+e.BytesUp, down+e.BytesDown
			}
		}
		return up, down
	}

	// Two requests of one connection are one dial.
	c := w.mustDial("room", "tcp", testnet.Allowed+":80")
	br := bufio.NewReader(c)
	for range 2 {
		io.WriteString(c, "POST /"+secret+"?q="+secret+" HTTP/1.1\r\nHost: allowed.example.org\r\nAuthorization: Bearer "+secret+"\r\nCookie: "+secret+"\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("x", 1000))
		if _, status, _ := readEcho(w, br, nil); status != 200 {
			t.Fatal(status)
		}
	}
	c.Close()
	both(1, "http", "allowed.example.org", testnet.Allowed, 80, "workshop.yaml:10")
	if up, down := bytes("http", 80); up < 2000 || up > 3000 || down < 200 || down > 4000 {
		t.Errorf("http: %d up, %d down", up, down)
	}

	tc, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org")
	if err != nil {
		t.Fatal(err)
	}
	get(w, tc, "https://allowed.example.org/"+secret+"?"+secret)
	tc.Close()
	both(1, "tls", "allowed.example.org", testnet.Allowed, 443, "workshop.yaml:10")
	if up, down := bytes("tls", 443); up < 1200 || down < 400 { // the hello, with its key shares, and the certificate
		t.Errorf("tls: %d up, %d down", up, down)
	}

	// Other ports, exactly: by a range, and by a pinned name.
	c = w.mustDial("room", "tcp", "198.51.100.200:9000")
	c.Write(make([]byte, 123_456))
	io.CopyN(io.Discard, c, 100_000)
	c.(*net.TCPConn).CloseWrite()
	if n, err := io.Copy(io.Discard, c); n != 23_456 || err != nil {
		t.Errorf("echo: %d %v", n, err)
	}
	both(1, "tcp", "", "198.51.100.200", 9000, "workshop.yaml:12")
	if up, down := bytes("tcp", 9000); up != 123_456 || down != 123_456 {
		t.Errorf("tcp: %d up, %d down", up, down)
	}
	w.ask("room", "udp", "10.0.0.1:53", "ssh.example.org", dns.TypeA)
	c = w.mustDial("room", "tcp", testnet.SSH+":22")
	bufio.NewReader(c).ReadString('\n')
	c.Close()
	both(1, "tcp", "ssh.example.org", testnet.SSH, 22, "workshop.yaml:11")

	// The explicit proxy: a tunnel, and HTTP inside one, are one dial each.
	for _, to := range []string{"ssh.example.org:22", "allowed.example.org:80"} {
		c = w.mustDial("room", "tcp", explicitAddr)
		br = bufio.NewReader(c)
		io.WriteString(c, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\nProxy-Authorization: Basic "+secret+"\r\n\r\n")
		req, _ := http.NewRequest("CONNECT", "http://x", nil)
		if resp, err := http.ReadResponse(br, req); err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if strings.HasSuffix(to, ":80") {
			io.WriteString(c, "GET /"+secret+" HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n")
			readEcho(w, br, nil)
		} else {
			br.ReadString('\n')
		}
		c.Close()
	}
	both(1, "proxy", "ssh.example.org", testnet.SSH, 22, "workshop.yaml:11")
	both(1, "proxy", "allowed.example.org", testnet.Allowed, 80, "workshop.yaml:10")

	// Refusals, with a secret in every place of a request.
	c = w.mustDial("room", "tcp", testnet.Allowed+":80")
	io.WriteString(c, "GET /"+secret+"?"+secret+" HTTP/1.1\r\nHost: evil.example.net\r\nAuthorization: "+secret+"\r\n\r\n")
	readEcho(w, bufio.NewReader(c), nil)
	for _, raw := range []string{
		"GET http://user:" + secret + "@allowed.example.org/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n",
		"GET http://user:" + secret + "@evil.example.net/ HTTP/1.1\r\nHost: user:" + secret + "@evil.example.net\r\n\r\n",
		"CONNECT " + secret + "@allowed.example.org:443 HTTP/1.1\r\nHost: " + secret + "\r\n\r\n",
	} {
		c = w.mustDial("room", "tcp", explicitAddr)
		io.WriteString(c, raw)
		if _, status, _ := readEcho(w, bufio.NewReader(c), nil); status != 400 {
			t.Errorf("%q: %d", raw, status)
		}
	}
	w.guard.eventually(3, "malformed requests", func(e event) bool { return e.Kind == "proxy" && e.Reason == "malformed" })
	w.guard.eventually(1, "a denied Host", func(e event) bool { return e.Name == "evil.example.net" && e.Verdict == "deny" })

	// Inbound: up is from the worker, as everywhere.
	var l net.Listener
	if err := w.rooms["room"].ns.Do(func() (err error) { l, err = net.Listen("tcp", "127.0.0.1:8080"); return err }); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, strings.Repeat(secret, 10))
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	w.outside.Do(func() (err error) { c, err = net.Dial("tcp", "127.0.0.1:20000"); return err })
	io.WriteString(c, secret)
	io.ReadFull(c, make([]byte, 10*len(secret)))
	c.Close()
	both(1, "inbound", "", "127.0.0.1", 8080, "")
	if up, down := bytes("inbound", 8080); up != 10*len(secret) || down != len(secret) {
		t.Errorf("inbound: %d up, %d down", up, down)
	}

	w.schema()
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	for _, e := range w.guard.lines {
		if strings.Contains(e.raw, secret) {
			t.Errorf("an event with what was said: %s", e.raw)
		}
	}
}

// schema checks that every event so far is what schemas/event.schema.json says.
func (w *world) schema() {
	w.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.Event))
	if err != nil {
		w.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("event", doc); err != nil {
		w.Fatal(err)
	}
	s, err := c.Compile("event")
	if err != nil {
		w.Fatal(err)
	}
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	if len(w.guard.lines) == 0 {
		w.Error("no events")
	}
	for _, e := range w.guard.lines {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(e.raw))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			w.Errorf("%s: %v", e.raw, err)
		}
	}
}

// TestManyAllowed: hundreds of connections to one place are a line or two, with
// the exact number and sums.
func TestManyAllowed(t *testing.T) {
	w := newWorld(t, restricted(t, "198.51.100.192/26:9000"))
	const n, size = 300, 1000
	for range n {
		c := w.mustDial("room", "tcp", "198.51.100.200:9000")
		c.Write(make([]byte, size))
		io.ReadFull(c, make([]byte, size))
		c.Close()
	}
	for _, verdict := range []string{"allow", "end"} {
		w.guard.eventually(n, verdict, func(e event) bool { return e.Verdict == verdict && e.Port == 9000 })
	}
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	up, down := 0, 0
	for _, e := range w.guard.lines {
		up, down = up+e.BytesUp, down+e.BytesDown
	}
	if up != n*size || down != n*size || len(w.guard.lines) > 20 {
		t.Errorf("%d lines, %d up, %d down", len(w.guard.lines), up, down)
	}
}

// TestSplice: where no budget is, the payload doesn't pass through the guard's
// memory (splice(2)).
func TestSplice(t *testing.T) {
	w := newWorld(t, restricted(t, "198.51.100.192/26:9000"))
	c := w.mustDial("room", "tcp", "198.51.100.200:9000")
	io.WriteString(c, "x")
	io.ReadFull(c, make([]byte, 1))
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", w.guard.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pipes := 0
	for _, f := range fds {
		if to, _ := os.Readlink(filepath.Join(fmt.Sprintf("/proc/%d/fd", w.guard.cmd.Process.Pid), f.Name())); strings.HasPrefix(to, "pipe:") {
			pipes++
		}
	}
	if pipes < 5 { // both ends of one for each direction, and the output
		t.Errorf("%d ends of pipes", pipes)
	}
}
