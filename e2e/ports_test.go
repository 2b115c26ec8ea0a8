//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// freePort is a port of this machine that nobody uses.
func freePort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// listening are the addresses on which this machine listens on a port.
func listening(t *testing.T, port string) (addrs []string) {
	t.Helper()
	out, err := exec.Command("ss", "-Hltn", "sport = :"+port).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 3 {
			host, _, _ := net.SplitHostPort(f[3])
			addrs = append(addrs, host)
		}
	}
	return addrs
}

func TestB10_PublishedOnLoopback(t *testing.T) {
	s := scenario.New(t, "ports", "a published port reaches the worker from 127.0.0.1 of the host and from nowhere else")
	port := freePort(t)
	s.Env = []string{"E2E_PORT=" + port}
	s.Up()
	stop := s.Serve("worker", "127.0.0.1:8080", "from-the-worker")
	defer stop()
	get := func(host string) (string, error) {
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://" + net.JoinHostPort(host, port) + "/")
		if err != nil {
			return "", err
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		return string(b), err
	}
	if body, err := get("127.0.0.1"); err != nil || body != "from-the-worker" {
		t.Errorf("from 127.0.0.1: %q %v", body, err)
	}
	// the host's other addresses: its bridge, and what the test internet sees of it
	for _, addr := range []string{s.HostAddress(), "198.18.0.1"} {
		if body, err := get(addr); err == nil {
			t.Errorf("on %s it is served too: %q", addr, body)
		}
	}
	if l := listening(t, port); !slices.Equal(l, []string{"127.0.0.1"}) {
		t.Errorf("port %s is listened on at %v", port, l)
	}
	// a worker listening on ::1 is found as well
	stop()
	s.Eventually("the first server is gone", func() bool { _, err := get("127.0.0.1"); return err != nil })
	defer s.Serve("worker", "[::1]:8080", "from-v6")()
	if body, err := get("127.0.0.1"); err != nil || body != "from-v6" {
		t.Errorf("a server on ::1: %q %v", body, err)
	}
	text := s.Read("workshop.yaml")
	for _, wide := range []string{`["0.0.0.0:8080:8080"]`, `["[::]:8080:8080"]`, `[{published: 8080, target: 8080, host: 0.0.0.0}]`} {
		s.Write("workshop.yaml", strings.Replace(text, `["${E2E_PORT:-28080}:8080"]`, wide, 1))
		if d := s.Run("validate"); d.Code != 3 {
			t.Errorf("ports: %s: exit code %d", wide, d.Code)
		}
	}
	s.Write("workshop.yaml", strings.Replace(text, `["${E2E_PORT:-28080}:8080"]`, fmt.Sprintf(`[{published: %s, target: 8080, host: 0.0.0.0, expose_beyond_host: true}]`, port), 1))
	s.Expect(0, "validate")
}

// A port that another workshop of the user publishes: the refusal names that one, and
// `ps` says when the file's ports aren't those that are published.
func TestPortOfAnotherWorkshop(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	port, another := freePort(t), freePort(t)
	files := func(dir, worker string) map[string]string {
		return map[string]string{
			dir + "workshop.yaml":             "workshop:\n  name: " + worker + "s\n  container:\n    image: host\n    network: {mode: restricted}\n    ports: [\"" + port + ":8080\"]\n  workers: [" + worker + "]\n",
			dir + "workers/" + worker + ".md": "---\nname: " + worker + "\ndescription: Listens.\nallowed-tools: []\n---\nNothing.\n",
		}
	}
	s := scenario.At(t, "a port of another workshop is told as such, and edited ports are stale", files("", "first"))
	for name, text := range files("other/", "second") {
		s.Write(name, text)
	}
	s.Up()
	t.Cleanup(func() { s.Run("-p", s.Project+"-other", "-f", "other/workshop.yaml", "down") })
	d := s.Expect(5, "-p", s.Project+"-other", "-f", "other/workshop.yaml", "up")
	says(s, d, "127.0.0.1:"+port+", which second publishes, is taken by worker first of project "+s.Project+" ("+s.Dir+")", "`workshop -p "+s.Project+" down`")
	if d = s.Expect(0, "ps"); strings.Contains(d.Out+d.Err, "stale") || strings.Contains(d.Err, "aren't those") {
		t.Errorf("nothing was edited:\n%s%s", d.Out, d.Err)
	}
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), port+":", another+":", 1))
	d = s.Expect(0, "ps")
	if !strings.Contains(d.Out, "127.0.0.1:"+port+"->8080/tcp, stale") || !strings.Contains(d.Err, "workshop: hint: the published ports of first aren't those of workshop.yaml: `workshop up` applies them") {
		t.Errorf("edited:\n%s%s", d.Out, d.Err)
	}
	s.Up()
	if d = s.Expect(0, "ps"); strings.Contains(d.Out, "stale") {
		t.Errorf("after up:\n%s%s", d.Out, d.Err)
	}
}

// listen takes an address of this machine.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
