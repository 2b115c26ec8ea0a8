//go:build linux

package e2e

import (
	"bufio"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// proxyAt is where the upstream proxy of these tests listens.
const proxyAt = "198.51.100.80:3128"

// connects is an upstream proxy: it connects by CONNECT (RFC 9110, 9.3.6), for who has the value
// that it accepts.
type connects struct {
	s      *scenario.Scenario
	mu     sync.Mutex
	accept string   // empty: all
	seen   []string // "TARGET Proxy-Authorization"
}

func (p *connects) serve(c net.Conn) {
	br := bufio.NewReader(c)
	req, err := http.ReadRequest(br)
	if err != nil {
		return
	}
	auth := req.Header.Get("Proxy-Authorization")
	p.mu.Lock()
	p.seen = append(p.seen, req.RequestURI+" "+auth)
	ok := req.Method == http.MethodConnect && (p.accept == "" || auth == p.accept)
	p.mu.Unlock()
	if !ok {
		_, _ = io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n")
		return
	}
	var up net.Conn
	if err := p.s.Internet.NS().Do(func() (err error) { up, err = net.Dial("tcp", req.RequestURI); return err }); err != nil {
		_, _ = io.WriteString(c, "HTTP/1.1 502 no\r\n\r\n")
		return
	}
	defer up.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 200 ok\r\n\r\n")
	go func() {
		_, _ = io.Copy(up, br)
		_ = up.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, up)
}

// accepts has the proxy take one user and password alone.
func (p *connects) accepts(pair string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accept = basicOf(pair)
}

// take returns what the proxy was asked since.
func (p *connects) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.seen = nil }()
	return p.seen
}

func basicOf(pair string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}

// pair is the user and the password of the upstream proxy.
const pair = "ann:" + canary

// serveConnect serves an upstream proxy at an address of the test internet, for who has a user
// and a password, or for all.
func serveConnect(s *scenario.Scenario, addr, pair string) *connects {
	s.Helper()
	p := &connects{s: s}
	if pair != "" {
		p.accepts(pair)
	}
	var l net.Listener
	if err := s.Internet.NS().Do(func() (err error) { l, err = net.Listen("tcp", addr); return err }); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { l.Close() })
	go testnet.Serve(l, p.serve)
	return p
}

// behindProxy has a workshop's guard connect through an upstream proxy with the credential of
// this name, and returns the proxy.
func behindProxy(s *scenario.Scenario, name string) *connects {
	s.Helper()
	const dns = "      dns: [198.51.100.53]\n"
	edit(s, dns, dns+"      proxy: http://"+proxyAt+"\n      proxy_credential: "+name+"\n")
	return serveConnect(s, proxyAt, pair)
}

// ofProxy is the credential as the user's file has it.
func ofProxy(name, token string) string {
	return name + ": {file: " + token + ", hosts: [\"" + proxyAt + "\"], as: proxy}\n"
}

const throughProxy = "http https://allowed.example.org/ ca=/ca.pem -> "

// B32, B33, B36: an upstream proxy gets its user and password from a lease, and they are
// nowhere that a worker, or whoever reads our files, could find them.
func TestB32_ProxyCredential(t *testing.T) {
	s := scenario.New(t, "restricted", "the guard sends the upstream proxy its credential, which is nowhere else, and nothing without it")
	s.VerifyTestInternet()
	name, dir := s.Project, s.TempDir()
	p := behindProxy(s, name)
	token := func(text string) string { return userFile(t, dir, "token", text+"\n") }
	flags := []string{"--credentials", userFile(t, dir, "credentials.yaml", ofProxy(name, token(pair)))}
	agreed(s, flags)
	s.Sees("worker", throughProxy+"200")
	for _, got := range p.take() {
		if target, auth, _ := strings.Cut(got, " "); auth != basicOf(pair) || !strings.HasPrefix(target, testnet.Allowed+":") && !strings.HasPrefix(target, "["+testnet.Allowed6+"]:") {
			t.Errorf("the proxy got %q", got)
		}
	}
	s.Up(flags...) // nobody is asked again
	if all := search(s, tokenForms(canary)); len(all) > 0 {
		t.Errorf("the value is in %v", all)
	}
	says(s, s.Expect(0, "ps"), "worker: the upstream proxy "+proxyAt+" has the credential "+name+"\n", "every connection goes through "+proxyAt+", with the credential "+name+"\n")

	// Another proxy, another resolver or an endpoint is another question, or none at all.
	for _, c := range []struct{ old, text, want string }{
		{proxyAt, "198.51.100.80:3129", "may not go to 198.51.100.80:3129"},
		{"dns: [198.51.100.53]", "dns: [198.51.100.53, 198.51.100.54]", "nobody agreed"},
		{"- allowed.example.org\n", "- {host: allowed.example.org, at: api, requests: [\"GET *\"], credential: " + name + "}\n", "is for an upstream proxy (`as: proxy`), and can't be added to requests of allowed.example.org"},
	} {
		edit(s, c.old, c.text)
		says(s, s.Expect(4, append([]string{"up"}, flags...)...), c.want)
		edit(s, c.text, c.old)
	}

	// A proxy that refuses the value has it read again.
	token("ann:" + canary2)
	p.accepts("ann:" + canary2)
	p.take()
	const refuses = "the upstream proxy " + proxyAt + " refuses CONNECT with 407: it doesn't take its credential"
	if d := s.Run("firewall", "explain", "allowed.example.org:443", "--worker", "worker"); d.Code != 0 { // the host's second address may have got the new value
		says(s, d, refuses)
	}
	if got := p.take(); len(got) == 0 || !strings.HasSuffix(got[0], " "+basicOf(pair)) {
		t.Errorf("the proxy was asked by %q, want the old value first", got)
	}
	s.Eventually("the new value is there", func() bool { return s.Probe("worker", throughProxy+"200")[0].OK })

	// Revoked: within a second, and for good.
	began := time.Now()
	says(s, s.Expect(0, "credential", "revoke", name), "revoked: 1 line")
	for s.Probe("worker", throughProxy+"200")[0].OK {
		if time.Since(began) > 2*time.Second {
			t.Fatal("it is there two seconds after it was revoked")
		}
	}
	p.take()
	if s.Probe("worker", throughProxy+"200")[0].OK || len(p.take()) > 0 {
		t.Error("the proxy was asked after its credential was revoked")
	}
	says(s, s.Expect(0, "ps"), "nothing is reached through the upstream proxy "+proxyAt+", for its credential "+name+" isn't leased: it was revoked")
	s.Sees("worker", "http http://allowed.example.org/ -> 502")
	s.Expect(0, "down")
}
