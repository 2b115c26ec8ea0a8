//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/probe"
)

// hold keeps a connection of a worker in use, and tells what became of it.
func hold(s *scenario.Scenario, worker, host, addr string, port uint16, limit string) (end func() probe.Result) {
	s.Helper()
	container, ended := s.Inspect(worker), make(chan []probe.Result, 1)
	before := s.Conns(addr, port)
	go func() { ended <- s.ProbeLoop(container, "hold "+host+" limit="+limit) }()
	s.Eventually(host+" is held", func() bool { return s.Conns(addr, port) > before })
	return func() probe.Result {
		if r := <-ended; len(r) == 1 {
			return r[0]
		}
		return probe.Result{Seen: "nothing"}
	}
}

// lives tells of every container which one it is and since when it runs.
func lives(s *scenario.Scenario) map[string]string {
	out := map[string]string{}
	for service, c := range s.Containers() {
		out[service] = c.ID + " " + c.Started
	}
	return out
}

// goOn reports containers that were made anew or restarted.
func goOn(s *scenario.Scenario, before map[string]string, services ...string) {
	s.Helper()
	now := lives(s)
	for _, service := range services {
		if now[service] == "" || now[service] != before[service] {
			s.Errorf("%s was made anew or restarted: %q, before %q", service, now[service], before[service])
		}
	}
}

func edit(s *scenario.Scenario, old, new string) {
	s.Helper()
	text := s.Read("workshop.yaml")
	if strings.Count(text, old) != 1 {
		s.Fatalf("%q is there %d times", old, strings.Count(text, old))
	}
	s.Write("workshop.yaml", strings.Replace(text, old, new, 1))
}

func TestB27_RemovedLine(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "up after an edit of allow and deny ends the connections that nothing allows any more, and nothing else: no container is touched")
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:22\n        - allowed.example.org:8000\n")
	s.Up()
	before := lives(s)
	removed := hold(s, "worker", "ssh.example.org:22", testnet.SSH, 22, "20s")
	kept := hold(s, "worker", "allowed.example.org:8000", testnet.Allowed, 8000, "6s")
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:2222\n")
	if d := s.Up(); !strings.Contains(d.Err, "1 connection ended") {
		t.Errorf("up says nothing of the connection that it ended:\n%s", d.Err)
	}
	if r := removed(); r.Seen != "ECONNRESET" || r.Millis > 15000 {
		t.Errorf("the connection of the removed line: %s (%s) after %v ms", r.Seen, r.Detail, r.Millis)
	}
	// A new port needs the room's rules too.
	s.Sees("worker", append([]string{"tcp ssh.example.org:22 send=x -> " + cutOff, "tcp 198.51.100.22:22 send=x -> " + cutOff,
		"tcp ssh.example.org:2222 send=x -> data", "http https://allowed.example.org/ ca=/ca.pem -> 200"}, closedAtOnce...)...)
	if r := kept(); r.Seen != "kept" {
		t.Errorf("the connection of a line that stayed: %s (%s)", r.Seen, r.Detail)
	}
	goOn(s, before, "worker", "room", "guard")
	if d := s.Up(); strings.Contains(d.Err, "reload") {
		t.Errorf("an up without an edit:\n%s", d.Err)
	}

	// What a guard starts with is the last policy, not the first.
	s.Crash("guard")
	s.Eventually("the guard is back", func() bool {
		return s.Probe("worker", "tcp ssh.example.org:2222 send=x limit=2s")[0].Seen == "data"
	})
	s.Sees("worker", "tcp 198.51.100.22:22 send=x -> "+cutOff)
	goOn(s, before, "worker", "room")
}

func TestB27_DenyLine(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "a deny line that comes in at up closes what is open, at once")
	s.Up()
	before := lives(s)
	open := hold(s, "worker", "ssh.example.org:22", testnet.SSH, 22, "20s")
	edit(s, "- gist.allowed.example.org\n", "- gist.allowed.example.org\n        - ssh.example.org\n        - allowed.example.org\n")
	s.Up()
	if r := open(); r.Seen != "ECONNRESET" {
		t.Errorf("the connection of a denied name: %s (%s)", r.Seen, r.Detail)
	}
	asked := s.Internet.Asked("allowed.example.org")
	s.Sees("worker", "dns 198.51.100.54 allowed.example.org A -> NXDOMAIN", "http https://allowed.example.org/ connect=198.51.100.10:443 ca=/ca.pem -> "+cutOff)
	if s.Internet.Asked("allowed.example.org") != asked {
		t.Error("a denied name was asked for")
	}
	goOn(s, before, "worker", "room", "guard")
}

// What a running guard can't change makes a new one, and only that.
func TestUpMakesAGuardAnewForItsFixedPart(t *testing.T) {
	s := scenario.New(t, "restricted", "another resolver makes a new guard, and the worker goes on")
	s.Up()
	before := lives(s)
	edit(s, "dns: [198.51.100.53]", "dns: [198.51.100.53:53]")
	s.Up()
	goOn(s, before, "worker", "room")
	if lives(s)["guard"] == before["guard"] {
		t.Error("the guard is the old one")
	}
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "tcp ssh.example.org:22 -> data")
}

func TestB21_ReloadBesideKills(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "a guard that is killed while it gets a new policy comes up with the old one or the new one, whole, and the next up gets there")
	s.Up()
	s.Internet.Reset()
	stop := attacker(s)
	lines := []string{"- ssh.example.org:22\n", "- ssh.example.org:2222\n"}
	for i := range 4 {
		edit(s, lines[i%2], lines[1-i%2])
		ended := make(chan scenario.Done, 1)
		go func() { ended <- s.Run("up", "--wait-timeout", "20s") }()
		time.Sleep(time.Duration(200+150*i) * time.Millisecond)
		s.Crash("guard")
		if d := <-ended; d.Code != 0 {
			t.Logf("up beside a kill: exit code %d\n%s", d.Code, d.Err)
		}
		s.Up()
		open, closed := []string{"2222", "22"}[i%2], []string{"22", "2222"}[i%2]
		s.Sees("worker", "tcp ssh.example.org:"+open+" send=x -> data", "tcp 198.51.100.22:"+closed+" send=x -> "+cutOff)
	}
	stop()
	silent(s, testnet.Evil)
}
