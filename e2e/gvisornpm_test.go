//go:build linux

package e2e

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// holdsConnections opens a number of connections, says so and holds them until its input ends
// or one is reset.
const holdsConnections = `
import select, socket, sys
to = (socket.gethostbyname('ssh.example.org'), 22)
all = []
for i in range(int(sys.argv[1])):
    c = socket.create_connection(to, 20)
    if not c.recv(1):
        sys.exit('connection %d is not carried' % i)
    all.append(c)
print('held', flush=True)
p = select.poll()
p.register(sys.stdin, select.POLLIN | select.POLLHUP)
p.register(all[0], select.POLLHUP | select.POLLERR)
p.poll()
`

// TestGVisorNpm: `npm install` while the worker has all the connections that it may have, and
// while its outlet is killed, costs time and no worker (B29, B60).
func TestGVisorNpm(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		needs(t, "npm", "node", "python3")
		s := scenario.New(t, "tools", "npm install in a worker on gVisor ends well beside 1,024 connections, and after its outlet was killed")
		edit(s, "        - allowed.example.org   # nothing that a tool needs\n", "        - "+testnet.NPMHost+"\n        - ssh.example.org:22\n")
		return s
	})
	if s == nil {
		return
	}
	served := s.Internet.Served(testnet.NPMHost)
	var asked atomic.Int32
	var package1 atomic.Pointer[chan struct{}] // where the first request for a package waits
	t.Cleanup(s.Internet.Site(testnet.NPMHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if strings.HasSuffix(r.URL.Path, ".tgz") {
			if waits := package1.Swap(nil); waits != nil {
				<-*waits
			}
		}
		served.ServeHTTP(w, r)
	})))
	before := lives(s)
	hold := func(n string) (release func(), held func() bool) {
		t.Helper()
		cmd := s.Command(t.Context(), "exec", "builder", "--", "python3", "-c", holdsConnections, n)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said syncBuffer
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
		return func() { in.Close() }, func() bool { return strings.Contains(said.String(), "held") }
	}
	install := func(dir string) (ended chan scenario.Done) {
		ended = make(chan scenario.Done, 1)
		const retries = " --fetch-retry-mintimeout 100 --fetch-retry-maxtimeout 1000 --fetch-retries 5"
		go func() {
			ended <- s.Run("exec", "builder", "--", "sh", "-c", "mkdir /tmp/"+dir+" && cd /tmp/"+dir+" && npm install --cache /tmp/"+dir+"/cache greeting"+retries+` && node -p "require('greeting')"`)
		}()
		return ended
	}
	installed := func(what string, d scenario.Done) {
		t.Helper()
		if d.Code != 0 || !strings.Contains(d.Out, testnet.Greeting) {
			t.Errorf("npm %s: exit code %d\n%s%s", what, d.Code, d.Out, d.Err)
		}
	}

	release, held := hold("1024")
	s.Eventually("every connection is held", held)
	ended := install("full")
	select {
	case d := <-ended:
		t.Errorf("npm ended beside 1,024 connections: exit code %d\n%s%s", d.Code, d.Out, d.Err)
	case <-time.After(3 * time.Second):
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("npm made %d requests beside 1,024 connections", n)
	}
	release()
	installed("that waited for its turn", <-ended)

	waits := make(chan struct{})
	package1.Store(&waits)
	_, held = hold("1000")
	s.Eventually("a thousand connections are held", held)
	ended = install("killed")
	s.Eventually("npm waits for a package", func() bool { return package1.Load() == nil })
	s.Crash("outlet")
	close(waits)
	installed("whose outlet was killed", <-ended)

	now := lives(s)
	for _, service := range []string{"builder", "room", "guard"} {
		if now[service] != before[service] {
			t.Errorf("%s is %s, was %s", service, now[service], before[service])
		}
	}
	s.Sees("builder", "tcp ssh.example.org:22 -> data")
}
