package guard

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/guard/control"
)

// at is a line with an endpoint: "api 600 allowed.example.org".
func at(t testing.TB, text string, requests ...string) firewall.Rule {
	t.Helper()
	var name, host string
	var port uint16
	if _, err := fmt.Sscan(text, &name, &port, &host); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(host, ":") {
		host += ":443"
	}
	r := rule(t, host, int(port))
	r.Endpoint = firewall.Endpoint{At: name, Port: port}
	for _, text := range requests {
		x, err := request.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		r.Endpoint.Requests = append(r.Endpoint.Requests, x)
	}
	return r
}

// apiAddr is where the endpoint of apiPolicy is.
const apiAddr = "127.0.0.1:600"

func apiPolicy(t testing.TB) firewall.Policy {
	p := restricted(t, "**.example.org:22,80,443,8443", "198.51.100.0/24:443")
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, at(t, "api 600 allowed.example.org", "GET,HEAD /repos/**", "POST /repos/acme/app/pulls", "GET /bytes/*", "GET /stream"))
	p.Rooms = append(p.Rooms, firewall.RoomPolicy{Room: "other", Mode: firewall.Restricted, Workers: []string{"eve"}, Allow: allow(t, "evil.example.net")})
	return p
}

// apiWorld is a world with the endpoint, whose guard has the test internet's roots.
func apiWorld(t testing.TB, p firewall.Policy) *world {
	t.Helper()
	w := buildWorld(t, p)
	w.policy.Roots = [][]byte{w.root()}
	w.writePolicy()
	w.startRooms()
	w.startGuard()
	return w
}

// root is the test internet's authority.
func (w *world) root() []byte {
	block, _ := pem.Decode(w.in.CA)
	return block.Bytes
}

// send sends bytes to an address in the room, and returns the response; status 0: there was
// none.
func (w *world) send(addr, text string) (resp *http.Response, body string) {
	w.Helper()
	c := w.mustDial("room", "tcp", addr)
	defer c.Close()
	go io.WriteString(c, text)
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return &http.Response{}, err.Error()
	}
	b, _ := io.ReadAll(resp.Body)
	return resp, string(b)
}

// TestB34_Endpoint: what a line has is sent as the bytes that were checked, to its host by
// verified TLS; the connection is kept, and bodies go as they came.
func TestB34_Endpoint(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	c := w.mustDial("room", "tcp", apiAddr)
	br := bufio.NewReader(c)
	for i, x := range []struct{ request, path string }{
		{"GET /repos/acme/app?per_page=100&q=a%26b HTTP/1.1\r\nHost: 127.0.0.1:600\r\nAuthorization: Bearer own\r\n\r\n", "/repos/acme/app?per_page=100&q=a%26b"},
		{"GET /repos HTTP/1.1\r\nHost: localhost:600\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: x\r\n\r\n", "/repos"},
		{"GET /repos/caf%C3%A9/$x HTTP/1.1\r\nHost: 127.0.0.1:600\r\nCookie: a=b\r\n\r\n", "/repos/caf%C3%A9/$x"},
		{"POST /repos/acme/app/pulls? HTTP/1.1\r\nHost: 127.0.0.1:600\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "/repos/acme/app/pulls?"},
		{"POST /repos/acme/app/pulls HTTP/1.1\r\nHost: 127.0.0.1:600\r\nContent-Length: 3\r\n\r\nabc", "/repos/acme/app/pulls"},
	} {
		io.WriteString(c, x.request)
		e, status, body := readEcho(w, br, nil)
		if status != 200 || e.Path != x.path || e.Host != "allowed.example.org" || e.SNI != "allowed.example.org" {
			t.Errorf("request %d: %d %s", i, status, body)
		}
		if i == 0 && e.Header.Get("Authorization") != "Bearer own" || i == 1 && e.Header.Get("Upgrade") != "" {
			t.Errorf("headers: %v", e.Header)
		}
	}
	if n := w.in.Conns(testnet.Allowed, 443) + w.in.Conns(testnet.Allowed6, 443); n != 1 {
		t.Errorf("%d connections for 5 requests, want 1", n)
	}
	if resp, body := w.send(apiAddr, "HEAD /repos/a HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %v %s", resp.Status, body)
	}
	if resp, body := w.send(apiAddr, "GET /bytes/3000000 HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n"); resp.StatusCode != 200 || len(body) != 3_000_000 {
		t.Errorf("a large response: %v, %d bytes", resp.Status, len(body))
	}
	w.guard.eventually(1, "that it was let through", func(e event) bool {
		return e.Kind == "endpoint" && e.Verdict == "end" && e.Name == "allowed.example.org" && e.Rule == "workshop.yaml:600" && e.BytesDown > 3_000_000
	})
}

// TestB34_EndpointRefuses are attacks 1, 2, 6, 8 to 14 and 16 of the design's list: each is
// refused, and the host sees neither a request nor a packet.
func TestB34_EndpointRefuses(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	const host = "Host: 127.0.0.1:600\r\n"
	many := strings.Repeat("a=b&", 10_000)
	for _, x := range []struct {
		name, request string
		status        int
	}{
		{"another path", "GET /user HTTP/1.1\r\n" + host, 403},
		{"another method", "DELETE /repos/acme/app HTTP/1.1\r\n" + host, 403},
		{"lower case", "get /repos/a HTTP/1.1\r\n" + host, 403},
		{"TRACE", "TRACE /repos/a HTTP/1.1\r\n" + host, 403},
		{"OPTIONS *", "OPTIONS * HTTP/1.1\r\n" + host, 400},
		{"1: another Host", "GET /repos/a HTTP/1.1\r\nHost: evil.example.net\r\n", 400},
		{"1: the host itself", "GET /repos/a HTTP/1.1\r\nHost: allowed.example.org\r\n", 400},
		{"1: no Host", "GET /repos/a HTTP/1.1\r\n", 400},
		{"1: another port", "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1\r\n", 400},
		{"2: absolute form", "GET http://evil.example.net/repos/a HTTP/1.1\r\nHost: evil.example.net\r\n", 400},
		{"2: absolute form of itself", "GET http://127.0.0.1:600/repos/a HTTP/1.1\r\n" + host, 400},
		{"2: a path that is a host", "GET //evil.example.net/repos/a HTTP/1.1\r\n" + host, 400},
		{"6: a key in the query", "GET /repos/a?access_token=x HTTP/1.1\r\n" + host, 400},
		{"6: a presigned query", "GET /repos/a?X-Amz-Signature=x HTTP/1.1\r\n" + host, 400},
		{"8: two Hosts", "GET /repos/a HTTP/1.1\r\n" + host + host, 400},
		{"8: a blank before the colon", "GET /repos/a HTTP/1.1\r\nHost : 127.0.0.1:600\r\n", 400},
		{"8: a folded header", "GET /repos/a HTTP/1.1\r\n" + host + "X: a\r\n b\r\n", 400},
		{"9: an override", "GET /repos/a HTTP/1.1\r\n" + host + "X-HTTP-Method-Override: DELETE\r\n", 400},
		{"9: an override in mixed case", "GET /repos/a HTTP/1.1\r\n" + host + "x-Http-METHOD: DELETE\r\n", 400},
		{"9: another URL", "GET /repos/a HTTP/1.1\r\n" + host + "X-Original-URL: /user\r\n", 400},
		{"9: an override with underscores", "GET /repos/a HTTP/1.1\r\n" + host + "X_HTTP_Method_Override: DELETE\r\n", 400},
		{"9: an override in the query", "GET /repos/a?_method=DELETE HTTP/1.1\r\n" + host, 400},
		{"15: a framing with underscores", "POST /repos/acme/app/pulls HTTP/1.1\r\n" + host + "Transfer_Encoding: chunked\r\nContent-Length: 0\r\n", 400},
		{"1: another host with underscores", "GET /repos/a HTTP/1.1\r\n" + host + "X_Forwarded_Host: evil.example.net\r\n", 400},
		{"10: dots", "GET /repos/../user HTTP/1.1\r\n" + host, 400},
		{"10: encoded dots", "GET /repos/%2e%2e/user HTTP/1.1\r\n" + host, 400},
		{"10: dots encoded twice", "GET /repos/%252e%252e/user HTTP/1.1\r\n" + host, 400},
		{"10: two slashes", "GET /repos//user HTTP/1.1\r\n" + host, 400},
		{"10: a parameter of a segment", "GET /repos/a;x=1 HTTP/1.1\r\n" + host, 400},
		{"10: a backslash", "GET /repos\\..\\user HTTP/1.1\r\n" + host, 400},
		{"10: NUL", "GET /repos/a%00 HTTP/1.1\r\n" + host, 400},
		{"10: dots in a longer form", "GET /repos/%c0%ae%c0%ae/user HTTP/1.1\r\n" + host, 400},
		{"11: an encoded slash", "GET /repos/a%2f..%2fuser HTTP/1.1\r\n" + host, 400},
		{"11: an encoded slash alone", "GET /repos/@a%2Fb HTTP/1.1\r\n" + host, 400},
		{"12: 10,001 parameters", "GET /repos/a?" + many + "a=b HTTP/1.1\r\n" + host, 400},
		{"13: an upgrade", "GET /repos/a HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n", 400},
		{"13: CONNECT", "CONNECT allowed.example.org:443 HTTP/1.1\r\n" + host, 400},
		{"14: HTTP/2", "PRI * HTTP/2.0\r\n", 400},
		{"15: both lengths", "POST /repos/acme/app/pulls HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400},
		{"15: a strange coding", "POST /repos/acme/app/pulls HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n", 400},
	} {
		t.Run(x.name, func(t *testing.T) {
			resp, body := w.send(apiAddr, x.request+"\r\n")
			if resp.StatusCode != x.status || !strings.HasPrefix(body, "workshop: ") {
				t.Errorf("%v %q, want %d", resp.Status, body, x.status)
			}
			if strings.Contains(body, "workshop.yaml") {
				t.Errorf("a worker is told the line: %s", body)
			}
		})
	}
	t.Run("3: pipelined", func(t *testing.T) {
		c := w.mustDial("room", "tcp", apiAddr)
		io.WriteString(c, "GET /user HTTP/1.1\r\n"+host+"\r\nGET /repos/a HTTP/1.1\r\nHost: evil.example.net\r\n\r\nGET /repos/a HTTP/1.1\r\n"+host+"\r\n")
		c.SetDeadline(time.Now().Add(5 * time.Second))
		b, _ := io.ReadAll(c)
		if text := string(b); strings.Count(text, "HTTP/1.1 ") != 2 || !strings.Contains(text, "403 ") || !strings.Contains(text, "400 ") {
			t.Errorf("%s", b)
		}
	})
	t.Run("git's protocol, as of old Cargos", func(t *testing.T) {
		for ask, want := range map[string]bool{"/crates/info/refs?service=git-upload-pack": true, "/crates/config.json": false} {
			resp, body := w.send(apiAddr, "GET "+ask+" HTTP/1.1\r\n"+host+"User-Agent: git/2.0 (libgit2 1.5.1)\r\nAccept: */*\r\n\r\n")
			if resp.StatusCode != 403 || strings.Contains(body, "Cargo needs none from 1.68 on") != want {
				t.Errorf("%s: %s %q", ask, resp.Status, body)
			}
		}
	})
	if counts := w.in.Counts(); len(counts.Requests) > 0 || len(counts.Conns) > 0 || len(counts.Queries) > 0 {
		t.Errorf("arrived: %+v", counts)
	}
	w.guard.eventually(7, "refused requests", func(e event) bool {
		return e.Kind == "endpoint" && e.Verdict == "deny" && e.Reason == "request" && e.Name == "allowed.example.org" && e.Rule == "workshop.yaml:600"
	})
	w.guard.eventually(30, "ambiguous requests", func(e event) bool {
		return e.Kind == "endpoint" && e.Verdict == "deny" && e.Reason == "ambiguous" && e.Name == "allowed.example.org"
	})
}

// TestB33_AroundTheEndpoint are attacks 4 and 5: a host with an endpoint is reached by it
// alone, and only from its room.
func TestB33_AroundTheEndpoint(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	m := w.ask("room", "udp", "198.51.100.1:53", "allowed.example.org", dns.TypeA)
	if m.Rcode != dns.RcodeNameError || !strings.Contains(m.String(), "http://127.0.0.1:600/") {
		t.Errorf("%s", m)
	}
	if c, err := w.tls("room", testnet.Allowed+":443", "allowed.example.org"); err == nil {
		t.Errorf("TLS to the host's address: %v", c.ConnectionState().ServerName)
	}
	for _, to := range []string{"allowed.example.org:443", "allowed.example.org:22", "allowed.example.org:8443"} {
		if resp, _ := w.send(explicitAddr, "CONNECT "+to+" HTTP/1.1\r\nHost: "+to+"\r\n\r\n"); resp.StatusCode != 403 || !strings.Contains(resp.Status, "http://127.0.0.1:600/") {
			t.Errorf("CONNECT %s: %s", to, resp.Status)
		}
	}
	if resp, body := w.send(testnet.Allowed+":80", "GET /repos/a HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n"); resp.StatusCode != 403 || !strings.Contains(body, "http://127.0.0.1:600/") {
		t.Errorf("port 80: %s %s", resp.Status, body)
	}
	w.refused("other", apiAddr)
	if n := len(w.in.Counts().Requests); n > 0 {
		t.Errorf("%d requests arrived", n)
	}
	// The control: the names and the range beside it.
	w.in.Answer("second.example.org", testnet.A("198.51.100.12"))
	if _, err := w.tls("room", "198.51.100.12:443", "second.example.org"); err != nil {
		t.Errorf("the control failed: %v", err)
	}
	if err := w.host(control.Request{Op: control.OpChange, Changes: []firewall.Live{liveChange(t, "allowed.example.org:22")}}, &control.Applied{}); err == nil || !strings.Contains(err.Error(), "has the endpoint api") {
		t.Errorf("a live line with the name: %v", err)
	}
}

// TestB33_EndpointVerifies is attack 24: a certificate that isn't the host's ends it before a
// byte of the request, and says so; without roots there is no packet.
func TestB33_EndpointVerifies(t *testing.T) {
	p := apiPolicy(t)
	for i, name := range []string{"expired", "other", "foreign"} {
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, at(t, fmt.Sprintf("%s %d %s.example.org:8443", name, 700+i, name), "*"))
	}
	w := newWorld(t, p)
	const request = "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n"
	if resp, body := w.send(apiAddr, fmt.Sprintf(request, 600)); resp.StatusCode != 503 || !strings.Contains(body, "workshop up") {
		t.Errorf("without roots: %s %s", resp.Status, body)
	}
	if n := len(w.in.Counts().Packets); n > 0 {
		t.Errorf("without roots: %v", w.in.Counts().Packets)
	}
	p.Roots = [][]byte{[]byte("none"), w.root()}
	w.replace(p)
	heard := make(chan string, 10)
	for i, x := range []struct {
		name, why string
		cert      func() (*tls.Certificate, error)
	}{
		{"expired", "has expired", func() (*tls.Certificate, error) { return w.in.Expired("expired.example.org") }},
		{"other", "for another name", func() (*tls.Certificate, error) { return w.in.Certificate("evil.example.net") }},
		{"foreign", "not signed by an authority", func() (*tls.Certificate, error) { return testnet.Foreign("foreign.example.org") }},
	} {
		addr := fmt.Sprintf("198.51.100.%d", 40+i)
		w.in.Answer(x.name+".example.org", testnet.A(addr))
		cert, err := x.cert()
		if err != nil {
			t.Fatal(err)
		}
		l := tls.NewListener(w.listenOutside(addr+":8443"), &tls.Config{Certificates: []tls.Certificate{*cert}})
		go testnet.Serve(l, func(c net.Conn) {
			line, _ := bufio.NewReader(c).ReadString('\n')
			heard <- line
		})
		resp, body := w.send(fmt.Sprintf("127.0.0.1:%d", 700+i), fmt.Sprintf(request, 700+i))
		if resp.StatusCode != 502 || !strings.Contains(body, x.why) {
			t.Errorf("%s: %s %s", x.name, resp.Status, body)
		}
		w.guard.eventually(1, x.name, func(e event) bool {
			return e.Kind == "endpoint" && e.Verdict == "note" && e.Reason == "certificate" && e.Name == x.name+".example.org"
		})
		select {
		case line := <-heard:
			if line != "" {
				t.Errorf("%s: the host heard %q", x.name, line)
			}
		case <-time.After(5 * time.Second):
			t.Error("no connection")
		}
	}
}

// TestB27_Endpoint: what the policy no longer has is cut while it is held, what it still has
// goes on; a live deny closes the endpoint.
func TestB27_Endpoint(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	release := make(chan struct{})
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.WriteString(rw, "begun\n")
		rw.(http.Flusher).Flush()
		<-release
		io.WriteString(rw, "ended\n")
	}))
	hold := func(path string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c := w.mustDial("room", "tcp", apiAddr)
		io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n")
		br := bufio.NewReader(c)
		start := testutil.Now()
		for line := ""; line != "begun\n"; { // unbuffered: before the end
			var err error
			if line, err = br.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if d := testutil.Since(start); d > 2*time.Second {
			t.Errorf("the first line after %v", d)
		}
		return c, br
	}
	stream, _ := hold("/stream")
	_, repos := hold("/repos/a")
	p := apiPolicy(t)
	p.Roots = w.policy.Roots
	last := &p.Rooms[0].Allow[len(p.Rooms[0].Allow)-1]
	last.Endpoint.Requests = last.Endpoint.Requests[:3]
	if a := w.replace(p); a.Cut != 1 {
		t.Errorf("%+v", a)
	}
	w.cut(stream, time.Second)
	if resp, _ := w.send(apiAddr, "GET /stream HTTP/1.1\r\nHost: 127.0.0.1:600\r\n\r\n"); resp.StatusCode != 403 {
		t.Errorf("a request that was taken out: %s", resp.Status)
	}
	close(release)
	if rest, err := io.ReadAll(repos); err != nil || !strings.Contains(string(rest), "ended") {
		t.Errorf("what is still allowed: %q, %v", rest, err)
	}
	other := apiPolicy(t)
	other.Roots = w.policy.Roots
	other.Rooms[0].Allow[len(other.Rooms[0].Allow)-1].Endpoint.At = "b"
	other.Version, other.Workshop, other.Resolvers = w.policy.Version, w.policy.Workshop, w.policy.Resolvers
	if err := w.host(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&other)}, &control.Applied{}); err == nil || !strings.Contains(err.Error(), "endpoints") {
		t.Errorf("another set of endpoints: %v", err)
	}
	w.change(control.Request{Op: control.OpChange, Changes: []firewall.Live{liveChange(t, "deny allowed.example.org:1-65535")}})
	if resp, body := w.send(apiAddr, "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1:600\r\n\r\n"); resp.StatusCode != 403 || resp.Header.Get("X-Workshop-Deny") != "denied" {
		t.Errorf("denied: %s %s", resp.Status, body)
	}
}

// TestB35_EndpointRedirects is attack 17: a redirect is the tool's to follow, one to the
// host itself leads to the endpoint, and no header leads elsewhere.
func TestB35_EndpointRedirects(t *testing.T) {
	w := apiWorld(t, apiPolicy(t))
	to := ""
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", to)
		rw.Header().Set("Alt-Svc", `h2="evil.example.net:443"`)
		rw.Header().Set("Refresh", "0; url=https://evil.example.net/")
		rw.WriteHeader(307)
	}))
	for location, want := range map[string]string{
		"https://allowed.example.org/repos/b?x=1":     "http://127.0.0.1:600/repos/b?x=1",
		"https://allowed.example.org":                 "http://127.0.0.1:600",
		"/repos/b":                                    "/repos/b",
		"https://evil.example.net/":                   "https://evil.example.net/",
		"https://allowed.example.org.evil.example/":   "https://allowed.example.org.evil.example/",
		"https://allowed.example.org@evil.example/":   "https://allowed.example.org@evil.example/",
		"https://allowed.example.org:8443/repos/a":    "https://allowed.example.org:8443/repos/a",
		"http://allowed.example.org/repos/downgraded": "http://allowed.example.org/repos/downgraded",
	} {
		to = location
		resp, body := w.send(apiAddr, "GET /repos/a HTTP/1.1\r\nHost: 127.0.0.1:600\r\nConnection: close\r\n\r\n")
		if resp.StatusCode != 307 || resp.Header.Get("Location") != want || resp.Header.Get("Alt-Svc") != "" || resp.Header.Get("Refresh") != "" {
			t.Errorf("%s: %s %v %s", location, resp.Status, resp.Header, body)
		}
	}
	if c := w.in.Counts(); len(c.Conns) != 1 {
		t.Errorf("connections: %v", c.Conns)
	}
}
