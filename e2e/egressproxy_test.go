//go:build linux

package e2e

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// A guard connects through a squid that has the rules of its workshop: what is allowed passes
// both, as an address by the guard's user, and what isn't never reaches squid, nor passes it
// for who asks it directly.
func TestEgressProxy(t *testing.T) {
	s := scenario.New(t, "restricted", "what the guard allows passes squid by the rules that were exported for it, and what it denies is denied there")
	s.VerifyTestInternet()
	name, dir := s.Project, s.TempDir()
	const dns = "      dns: [198.51.100.53]\n"
	edit(s, dns, dns+"      proxy: http://"+proxyAt+"\n      proxy_credential: "+name+"\n")
	acls := s.Expect(0, "firewall", "export", "--for", "squid", "--guard", "ann").Out
	squid := s.Internet.Squid(t, proxyAt, acls, pair)
	flags := []string{"--credentials", userFile(t, dir, "credentials.yaml", ofProxy(name, userFile(t, dir, "token", pair+"\n")))}
	agreed(s, flags)

	s.Sees("worker", throughProxy+"200", "http http://allowed.example.org/ -> 200")
	says(s, s.Expect(0, "firewall", "explain", "allowed.example.org:443", "--worker", "worker"), "would be dialled through the upstream proxy "+proxyAt)

	s.Sees("worker", "http http://denied.example.org/ -> NXDOMAIN", "http http://gist.allowed.example.org/ -> NXDOMAIN")
	s.Expect(0, "down") // squid logs a tunnel at its end

	// What the guard denies never reached squid, and what reached it are addresses.
	var asked []string
	s.Eventually("squid has logged the tunnels", func() bool { asked = squid.Asked(t); return len(asked) >= 2 })
	for _, line := range asked {
		if f := strings.Fields(line); len(f) != 4 || f[0] != http.MethodConnect || f[2] != "ann" || f[3] != "200" ||
			!strings.HasPrefix(f[1], testnet.Allowed+":") && !strings.HasPrefix(f[1], "["+testnet.Allowed6+"]:") {
			t.Errorf("squid was asked %q", line)
		}
	}

	// And who asks squid itself gets the same.
	for target, want := range map[string]int{
		"allowed.example.org:443": 200, "allowed.example.org:80": 200, "ssh.example.org:22": 200,
		"allowed.example.org:22": 403, "ssh.example.org:443": 403, "denied.example.org:443": 403, "gist.allowed.example.org:443": 403,
		"x.allowed.example.org:443": 403, "169.254.169.254:80": 403, "127.0.0.1:80": 403, testnet.Allowed + ":443": 407, testnet.Denied + ":22": 407, testnet.Denied + ":25": 403,
	} {
		if got := askProxy(s, target); got != want {
			t.Errorf("squid answers CONNECT %s by %d, want %d", target, got, want)
		}
	}
}

// askProxy asks the upstream proxy to connect, without credentials, and returns the status.
func askProxy(s *scenario.Scenario, target string) int {
	s.Helper()
	var c net.Conn
	if err := s.Internet.NS().Do(func() (err error) { c, err = net.Dial("tcp", proxyAt); return err }); err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = c.Write([]byte("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n"))
	r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err != nil {
		s.Fatal(err)
	}
	return r.StatusCode
}
