//go:build linux

package egressacl

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

const squidAt = "198.51.100.80:3128"

func dialSquid(in *testnet.Internet) (c net.Conn, err error) {
	err = in.NS().Do(func() (err error) { c, err = net.DialTimeout("tcp", squidAt, 5*time.Second); return err })
	return c, err
}

// ask sends a request to squid, and returns its status, and whether it is squid's own.
func ask(t *testing.T, in *testnet.Internet, method, target, headers string) (status int, own bool) {
	t.Helper()
	c, err := dialSquid(in)
	if err != nil {
		t.Error(err)
		return 0, false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	host := strings.TrimSuffix(strings.TrimPrefix(target, "http://"), "/")
	_, _ = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", method, target, host, headers)
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Errorf("%s %s: %v", method, target, err)
		return 0, false
	}
	if method != http.MethodConnect {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return r.StatusCode, r.Header.Get("X-Squid-Error") != ""
}

// passes reports whether squid lets a request through, whatever becomes of it then.
func passes(t *testing.T, in *testnet.Internet, method, target string) bool {
	status, own := ask(t, in, method, target, "")
	refused := []int{http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusBadRequest}
	return !own || !slices.Contains(refused, status)
}

// TestSquidMatrix: squid decides about each name and port as the guard does.
func TestSquidMatrix(t *testing.T) {
	p := policyOf(t, "testdata/matrix")
	text, _ := Squid(p, Options{Guard: "workshop-guard"})
	in := testnet.New(t, testnet.Options{Near: near(t)})
	rows := matrix()
	for host, addrs := range addressesOf {
		var records []testnet.Record
		for _, a := range addrs {
			records = append(records, testnet.A(a))
		}
		in.Answer(host, records...)
	}
	in.Squid(t, squidAt, string(text), "workshop-guard:secret")
	m := p.Rooms[0].Compile()
	var open, shut atomic.Int32
	var all sync.WaitGroup
	many := make(chan struct{}, 24) // squid waits for what isn't there
	for _, r := range rows {
		guard := guards(m, r.host, r.port, addressesOf[strings.ToLower(r.host)])
		if guard {
			open.Add(1)
		} else {
			shut.Add(1)
		}
		at := net.JoinHostPort(strings.Trim(r.host, "[]"), strconv.Itoa(int(r.port)))
		for method, target := range map[string]string{http.MethodConnect: at, http.MethodGet: "http://" + at + "/"} {
			all.Go(func() {
				many <- struct{}{}
				defer func() { <-many }()
				got := passes(t, in, method, target)
				not := cmp.Or(r.not, r.notSquid)
				switch {
				case not == "" && got != guard:
					t.Errorf("%s %s: squid lets it through: %v, the guard: %v", method, target, got, guard)
				case not != "" && got == guard:
					t.Errorf("%s %s is named as not expressible (%s), and decided equally", method, target, not)
				}
			})
		}
	}
	all.Wait()
	for _, r := range rows {
		if r.alone && in.Asked(r.host) > 0 {
			t.Errorf("squid looked %s up, which no line opens", r.host)
		}
	}
	if open, shut := open.Load(), shut.Load(); len(rows) < 60 || open < 20 || shut < 20 {
		t.Errorf("%d rows, %d open and %d closed: at least 60, 20 and 20", len(rows), open, shut)
	}
}

// near is a namespace of the test's own, so that several can run.
func near(t *testing.T) *testnet.NS {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "network namespaces need root")
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// TestSquidGuard: the guard's user alone may connect to addresses, as far as lines go; and
// nobody may if there is none.
func TestSquidGuard(t *testing.T) {
	p := policyOf(t, "testdata/matrix")
	text, _ := Squid(p, Options{Guard: "workshop-guard"})
	in := testnet.New(t, testnet.Options{Near: near(t)})
	in.Squid(t, squidAt, string(text), "workshop-guard:secret")
	const guard, other = "Proxy-Authorization: Basic d29ya3Nob3AtZ3VhcmQ6c2VjcmV0\r\n", "Proxy-Authorization: Basic d29ya3Nob3AtZ3VhcmQ6b3RoZXI=\r\n"
	for _, c := range []struct {
		target, headers string
		want            int
	}{
		{"198.51.100.10:443", guard, 200},
		{"198.51.100.10:443", "", 407},
		{"198.51.100.10:443", other, 407},
		{"198.51.100.10:25", guard, 403},
		{"198.51.100.100:443", guard, 403}, // denied
		{"127.0.0.1:443", guard, 403},
		{"169.254.169.254:80", guard, 403},
		{"10.1.1.1:22", guard, 403},
		{"evil.example.net:443", guard, 403}, // names are not the guard's
	} {
		if got, _ := ask(t, in, http.MethodConnect, c.target, c.headers); got != c.want {
			t.Errorf("CONNECT %s with %q: %d, want %d", c.target, c.headers, got, c.want)
		}
	}
	if got, _ := ask(t, in, http.MethodGet, "http://198.51.100.10/", guard); got != 403 {
		t.Errorf("GET of an address: %d", got)
	}
	none, _ := Squid(p, Options{})
	if bytes.Contains(none, []byte("proxy_auth")) {
		t.Error("without a user there is one")
	}
}

// TestSquidOnlyWeb: squid itself speaks no TLS and no FTP for a client, shows nothing of
// itself, and tells hosts nothing of who asks; the host of the URL counts, not the header's.
func TestSquidOnlyWeb(t *testing.T) {
	text, _ := Squid(policyOf(t, "testdata/matrix"), Options{Guard: "workshop-guard"})
	in := testnet.New(t, testnet.Options{Near: near(t)})
	in.Answer("api.example.org", testnet.A("198.51.100.10"))
	squid := in.Squid(t, squidAt, string(text), "workshop-guard:secret")
	for _, target := range []string{
		"https://api.example.org/", "ftp://api.example.org:80/", "cache_object://api.example.org/info", "urn:x:y",
		"http://squid.example:3128/squid-internal-mgr/info", "http://localhost:3128/squid-internal-mgr/info", "/squid-internal-mgr/info", "/squid-internal-static/icons/SN.png", "http://" + squidAt + "/squid-internal-mgr/menu",
	} {
		if passes(t, in, http.MethodGet, target) {
			t.Errorf("GET %s passes", target)
		}
	}
	c, err := dialSquid(in)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET http://api.example.org/p?key=canary HTTP/1.1\r\nHost: evil.example.net\r\nConnection: close\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	var echo testnet.Echo
	if err := json.NewDecoder(r.Body).Decode(&echo); err != nil || echo.Host != "api.example.org" || echo.Path != "/p?key=canary" {
		t.Errorf("%+v %v", echo, err)
	}
	for name := range echo.Header {
		if slices.Contains([]string{"Via", "X-Forwarded-For", "Forwarded", "Proxy-Authorization"}, name) {
			t.Errorf("the host is sent %s: %s", name, echo.Header.Get(name))
		}
	}
	all := ""
	for began := time.Now(); !strings.Contains(all, "/p?") && time.Since(began) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		all = strings.Join(squid.Asked(t), "\n") // which is written when the request has ended
	}
	if strings.Contains(all, "canary") || !strings.Contains(all, "http://api.example.org/p?") {
		t.Errorf("the log is\n%s", all)
	}
}

// The example's squid.conf is one, with the example's policy.
func TestSquidExample(t *testing.T) {
	program := testnet.SquidProgram(t)
	conf, err := os.ReadFile("../../examples/egress-proxy/squid.conf")
	if err != nil {
		t.Fatal(err)
	}
	if at, last := strings.Index(string(conf), "include "), strings.LastIndex(string(conf), "http_access deny all\n"); at < 0 || last < at {
		t.Error("squid.conf doesn't end with http_access deny all, so an empty file opens everything")
	}
	acls, list := Squid(policyOf(t, "../../examples/egress-proxy"), Options{Guard: "workshop-guard"})
	if list.HasErrors() {
		t.Fatal(list)
	}
	dir := t.TempDir()
	path, at := filepath.Join(dir, "workshop.conf"), "include /etc/squid/workshop.conf"
	if strings.Count(string(conf), at) != 1 || os.WriteFile(path, acls, 0o644) != nil {
		t.Fatalf("squid.conf doesn't %s", at)
	}
	file := filepath.Join(dir, "squid.conf")
	if err := os.WriteFile(file, []byte(strings.Replace(string(conf), at, "include "+path, 1)+"visible_hostname squid.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-k", "parse", "-f", file).CombinedOutput(); err != nil || strings.Contains(string(out), "ERROR") || strings.Contains(string(out), "is ignored") {
		t.Errorf("%v\n%s", err, out)
	}
}
