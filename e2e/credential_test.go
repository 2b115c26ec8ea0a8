//go:build linux

package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/e2e/scenario"
)

const canary, canary2 = "canary-7f3a/91+c", "canary-second-0b"

// journal keeps what a host was sent, and accepts what it is told.
type journal struct {
	mu     sync.Mutex
	seen   []string // "PATH Authorization"
	accept string
}

func (u *journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	auth := r.Header.Get("Authorization")
	u.seen = append(u.seen, r.URL.Path+" "+auth)
	if u.accept != "" && auth != "Bearer "+u.accept {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = w.Write([]byte("fine"))
}

func (u *journal) accepts(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.accept = token
}

func (u *journal) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	defer func() { u.seen = nil }()
	return u.seen
}

// userFile writes a file that its user alone may read, as their credentials are, and returns
// its path.
func userFile(t testing.TB, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scenario.Own(t, dir)
	return file
}

// credentialed is the workshop restricted with an endpoint that has a credential, and the
// user's file of it. The credential's name is the project's, so that no other test has it.
func credentialed(t *testing.T, intent string) (s *scenario.Scenario, u *journal, name string, token func(string), flags []string) {
	s = scenario.New(t, "restricted", intent)
	name = s.Project
	u = &journal{}
	t.Cleanup(s.Internet.Site("allowed.example.org", u))
	s.VerifyTestInternet()
	edit(s, "- allowed.example.org\n", "- {host: allowed.example.org, at: api, requests: [\"GET,HEAD /repos/**\"], credential: "+name+"}\n")
	dir := s.TempDir()
	token = func(text string) { userFile(t, dir, "token", text+"\n") }
	token(canary)
	file := userFile(t, dir, "credentials.yaml", name+": {file: "+filepath.Join(dir, "token")+", hosts: [allowed.example.org]}\n")
	return s, u, name, token, []string{"--credentials", file}
}

// agreed brings it up with what a refused `up` has printed.
func agreed(s *scenario.Scenario, flags []string) scenario.Done {
	s.Helper()
	digest := digestOf(s, flags...)
	if len(s.Containers()) > 0 {
		s.Fatal("a refused `up` started something")
	}
	says(s, s.Expect(4, append([]string{"up", "--accept-credentials", "0000000000000000"}, flags...)...), "others than those of the digest")
	return s.Up(append([]string{"--accept-credentials", digest}, flags...)...)
}

// digestOf is the digest of the lines with which a first `up` is refused.
func digestOf(s *scenario.Scenario, flags ...string) string {
	s.Helper()
	d := s.Expect(4, append([]string{"up"}, flags...)...)
	_, digest, ok := strings.Cut(d.Err, "--accept-credentials ")
	if !ok || !strings.Contains(d.Err, "at: ") && !strings.Contains(d.Err, " by ") && !strings.Contains(d.Err, "  proxy ") {
		s.Fatalf("a first use isn't refused with its lines:\n%s", d.Err)
	}
	digest, _, _ = strings.Cut(digest, "`")
	return digest
}

const reposOK = "http http://127.0.0.1:600/repos/x -> 200"

// B32, B33: a credential is added to the requests of its line, and is nowhere that a worker,
// or whoever reads our files, could find it.
func TestB32_Credential(t *testing.T) {
	s, u, name, _, flags := credentialed(t, "the guard adds a credential to the requests of its line alone, and it is nowhere else")
	agreed(s, flags)
	u.take()
	s.Sees("worker", reposOK, "http http://127.0.0.1:600/user -> 403")
	if got := u.take(); len(got) != 1 || got[0] != "/repos/x Bearer "+canary {
		t.Errorf("the host got %q", got)
	}
	s.Up(flags...) // nobody is asked again
	if all := search(s, tokenForms(canary)); len(all) > 0 {
		t.Errorf("the value is in %v", all)
	}
	says(s, s.Expect(0, "ps"), "worker: the endpoint api (allowed.example.org) has the credential "+name+"\n")

	// Another line, or a host that the user's file doesn't have, is another question.
	edit(s, "GET,HEAD /repos/**", "GET,HEAD *")
	says(s, s.Expect(4, append([]string{"firewall", "reload"}, flags...)...), "nobody agreed", "GET,HEAD *")
	says(s, s.Expect(4, append([]string{"up"}, flags...)...), "nobody agreed")
	s.Sees("worker", "http http://127.0.0.1:600/user -> 403")
	edit(s, "GET,HEAD *", "GET,HEAD /repos/**")
	edit(s, "host: allowed.example.org", "host: gist.example.org")
	says(s, s.Expect(4, append([]string{"up"}, flags...)...), "may not go to gist.example.org", "credentials.yaml:1")
	edit(s, "host: gist.example.org", "host: allowed.example.org")
	says(s, s.Expect(4, append([]string{"up", "--learn"}, flags...)...), "have lines with your credentials")

	// What comes with the project doesn't count, nor does what a worker sees.
	s.Write("credentials.yaml", name+": {env: HOME, hosts: [allowed.example.org]}\n")
	planted := filepath.Join(s.Dir, "credentials.yaml")
	if err := os.Chmod(planted, 0o600); err != nil {
		t.Fatal(err)
	}
	scenario.Own(t, planted)
	says(s, s.Expect(4, "up", "--credentials", "credentials.yaml"), "credentials.yaml, the file of credentials, is in the project")
	before := s.Env
	s.Env = append(s.Env, "SSL_CERT_FILE="+filepath.Join(s.Dir, "ca.pem"))
	says(s, s.Expect(4, append([]string{"up"}, flags...)...), "ca.pem, the certificates of SSL_CERT_FILE, is in the project")
	s.Env = before

	broker := brokerOf(s, name)
	s.Expect(0, "down")
	s.Eventually("the broker has ended", func() bool { return unix.Kill(broker, 0) != nil })
	if got := u.take(); len(got) != 0 {
		t.Errorf("the host got %q", got)
	}
}

// brokerOf is the process id of the broker that has a project.
func brokerOf(s *scenario.Scenario, name string) int {
	s.Helper()
	sockets, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range sockets {
		cmdline, _ := os.ReadFile(file)
		if !bytes.HasSuffix(cmdline, []byte("\x00broker\x00")) {
			continue
		}
		proc := filepath.Dir(file)
		if to, _ := os.Readlink(filepath.Join(proc, "fd", brokerLog(proc))); strings.Contains(to, name+"-") {
			pid, _ := strconv.Atoi(filepath.Base(proc))
			return pid
		}
	}
	s.Fatal("no broker has the project")
	return 0
}

// B27, B36: what ends a credential ends it within its time, and nothing falls back to another
// way or an older value.
func TestB36_CredentialEnds(t *testing.T) {
	s, u, name, token, flags := credentialed(t, "revocation, a broker or a guard that is killed, and a value that its host refuses close the endpoint or renew the value")
	agreed(s, flags)
	s.Sees("worker", reposOK)

	// A host that refuses the value has it read again.
	token(canary2)
	u.accepts(canary2)
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 401")
	s.Eventually("the new value is there", func() bool { return s.Probe("worker", reposOK)[0].OK })

	// Another guard gets it at once.
	s.Crash("guard")
	s.Up(flags...)
	s.Eventually("leased to the new guard", func() bool { return s.Probe("worker", reposOK)[0].OK })

	// Revoked: within a second, and for good.
	began := time.Now()
	says(s, s.Expect(0, "credential", "revoke", name), "revoked: 1 line")
	for s.Probe("worker", reposOK)[0].OK {
		if time.Since(began) > 2*time.Second {
			t.Fatal("it is there two seconds after it was revoked")
		}
	}
	u.take()
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 503")
	if got := u.take(); len(got) != 0 {
		t.Errorf("the host got %q", got)
	}
	says(s, s.Expect(0, "ps"), "worker: the endpoint api (allowed.example.org) answers 503", "the credential "+name+" isn't leased: it was revoked")
	s.Up(append([]string{"--accept-credentials", digestOf(s, flags...)}, flags...)...)
	s.Sees("worker", reposOK)
}

// B36: where the process that leases is killed, a value is there until its lease ends, and
// not longer.
func TestB36_BrokerKilled(t *testing.T) {
	scenario.Once(t, "the guard's clock decides, on any engine")
	s, u, name, _, flags := credentialed(t, "without the process that leases credentials an endpoint and an upstream proxy close within 30 seconds, until the next up")
	p := behindProxy(s, "corp")
	dir := filepath.Dir(flags[1])
	text, err := os.ReadFile(flags[1])
	if err != nil {
		t.Fatal(err)
	}
	userFile(t, dir, "credentials.yaml", string(text)+ofProxy("corp", userFile(t, dir, "pair", pair+"\n")))
	agreed(s, flags)
	s.Sees("worker", reposOK, "tcp ssh.example.org:22 -> data")
	if err := unix.Kill(brokerOf(s, name), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	says(s, s.Expect(0, "ps"), "has the credential "+name+", but the process that leases it doesn't answer: it ends within 30s")
	time.Sleep(31 * time.Second)
	says(s, s.Expect(0, "ps"), "answers 503", "isn't leased: the process that leases it doesn't run")
	says(s, s.Expect(0, "ps"), "nothing is reached through the upstream proxy "+proxyAt)
	u.take()
	p.take()
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 503")
	if s.Probe("worker", "tcp ssh.example.org:22 -> data")[0].OK {
		t.Error("a host is reached through the proxy without its credential")
	}
	if got := append(u.take(), p.take()...); len(got) != 0 {
		t.Errorf("the host and the proxy got %q", got)
	}
	s.Up(flags...)
	s.Sees("worker", reposOK)
}

// brokerLog is the descriptor of a broker's log; "" if it has none.
func brokerLog(proc string) string {
	fds, _ := filepath.Glob(filepath.Join(proc, "fd", "*"))
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && strings.HasSuffix(to, "/broker.log") {
			return filepath.Base(fd)
		}
	}
	return ""
}
