//go:build linux

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// closedAtOnce: the probes that must be refused in every state of a room.
var closedAtOnce = []string{
	"connect 198.51.100.66:9000 -> ECONNREFUSED|ENETUNREACH", "udp 198.51.100.66:5000 -> EPERM|ECONNREFUSED|ENETUNREACH",
	"connect [2001:db8:1::66]:9000 -> " + refused6, "icmp 198.51.100.66 -> EPERM|EACCES|ENETUNREACH",
}

func TestB21_RoomKilled(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker whose room was killed has no way out, and is told so at once")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	s.Kill("room", "SIGKILL")
	s.Eventually("the room is gone", func() bool { return s.Containers()["room"].State == "exited" })
	s.Internet.Reset()
	time.Sleep(50 * time.Millisecond) // the guard closes what it holds
	s.Sees("worker", append([]string{"connect 198.51.100.10:443 -> ECONNREFUSED|ENETUNREACH", "connect 198.51.100.22:22 -> ECONNREFUSED|ENETUNREACH",
		"interfaces -> lo"}, closedAtOnce...)...)
	if c := s.Internet.Counts().Packets; len(c) != 0 {
		t.Errorf("packets left: %v", c)
	}
	// a worker without a room can't start, and up repairs all of it
	if err := s.Restart("worker"); scenario.TheEngine() == scenario.Podman { // which starts the room before: the guard serves it
		if err != nil {
			t.Error(err)
		}
		s.Eventually("the room is served", func() bool { return s.Containers()["room"].State == "running" })
		s.Sees("worker", closedAtOnce...)
	} else if err == nil {
		t.Error("a worker started without its room")
	}
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}

func TestB21_RoomRestartedUnderItsWorker(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker left behind in the namespace of an earlier room stays closed until up recreates it")
	s.Up()
	if err := s.Restart("room"); err != nil {
		t.Fatal(err)
	}
	s.Internet.Reset()
	s.Sees("worker", append([]string{"connect 198.51.100.10:443 -> ECONNREFUSED|ENETUNREACH"}, closedAtOnce...)...)
	silent(s, testnet.Evil)
	says(s, s.Expect(0, "ps"), "restricted, stale", "`workshop up`")
	says(s, s.Expect(1, "exec", "worker", "--", "false"), "the room of worker was restarted", "`workshop up`")
	s.Up()
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
}

func TestB21_ExecBeforeReadiness(t *testing.T) {
	s := scenario.New(t, "restricted", "an exec into a worker that runs before its guard does gets nowhere")
	s.Up()
	for _, service := range []string{"worker", "room", "guard"} {
		s.Stop(service)
	}
	s.Internet.Reset()
	for _, service := range []string{"room", "worker"} { // no guard
		if err := s.Start(service); err != nil {
			t.Fatal(err)
		}
		if service == "room" { // one that isn't made yet is as closed, in other words
			s.Eventually("the room is made again", func() bool { return strings.Count(s.Logs("room"), "READY") > 1 })
		}
		if service == "worker" {
			s.SeesEarly("worker", closedAtOnce...)
			for _, r := range s.ProbeEarly("worker", "http https://allowed.example.org/ ca=/ca.pem limit=500ms", "tcp 198.51.100.66:443 limit=500ms", "dns 198.51.100.54 denied.example.org A limit=500ms") {
				if r.Seen != "TIMEOUT" && r.Seen != "ECONNREFUSED" && r.Seen != "NXDOMAIN" {
					t.Errorf("without a guard: %s %v: %s", r.Probe, r.Args, r.Seen)
				}
			}
		}
	}
	if c := s.Internet.Counts().Packets; len(c) != 0 {
		t.Errorf("packets left without a guard: %v", c)
	}
	if err := s.Start("guard"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the guard serves the room", func() bool {
		return s.ProbeEarly("worker", "http https://allowed.example.org/ ca=/ca.pem limit=1s")[0].Seen == "200"
	})
}

func TestB21_StormOfStartsAndKills(t *testing.T) {
	s := scenario.New(t, "restricted", "while room and guard come and go in every order, a worker that never stops trying gets nothing out")
	s.Up()
	s.Internet.Reset()
	container := s.Inspect("worker")
	type seen struct{ what, detail string }
	result := make(chan []seen, 1)
	go func() {
		var all []seen
		for _, r := range s.ProbeLoop(container, "connect 198.51.100.66:9000 for=2s limit=500ms", "udp 198.51.100.66:5000 for=2s limit=500ms", "tcp 198.51.100.66:22 for=2s limit=500ms") {
			all = append(all, seen{r.Probe + " " + strings.Join(r.Args, " ") + ": " + r.Seen, r.Seen})
		}
		result <- all
	}()
	end := time.Now().Add(6 * time.Second)
	for i := 0; time.Now().Before(end); i++ {
		victim := []string{"guard", "room", "guard"}[i%3]
		s.TryKill(victim, "SIGKILL")
		time.Sleep(200 * time.Millisecond)
		_ = s.Start(victim)
	}
	for _, r := range <-result {
		for part := range strings.SplitSeq(r.detail, "+") {
			if part == "open" || part == "data" || part == "ok" {
				t.Errorf("during the storm: %s", r.what)
			}
		}
	}
	silent(s, testnet.Evil)
}

func TestB21_NothingLeavesDuringUp(t *testing.T) {
	s := scenario.New(t, "restricted", "from the first moment that a worker runs, before up has returned, only the file's names are open")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := s.Command(ctx, "up")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tries := 0
	for done := make(chan error, 1); ; {
		if tries == 0 {
			go func() { done <- cmd.Wait() }()
		}
		if c, ok := s.Containers()["worker"]; ok && c.State == "running" {
			for _, r := range s.ProbeLoop(c, "connect 198.51.100.66:9000 for=200ms", "udp 198.51.100.66:5000 for=200ms", "tcp 198.51.100.66:443 for=200ms limit=300ms") {
				if strings.Contains(r.Seen, "open") || strings.Contains(r.Seen, "data") {
					t.Errorf("during up: %s %v: %s", r.Probe, r.Args, r.Seen)
				}
			}
		}
		tries++
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			silent(s, testnet.Evil)
			s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
			return
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func TestB29_GuardKilled(t *testing.T) {
	s := scenario.New(t, "restricted", "a killed guard comes back without restarting workers, and connections made meanwhile wait for it")
	s.Up()
	worker := s.Inspect("worker")
	s.Crash("guard")
	// without a guard, what is denied by rule stays denied at once, what is allowed waits
	s.Sees("worker", closedAtOnce...)
	r := s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem connect=198.51.100.10:443 limit=20s")[0]
	if r.Seen != "200" {
		t.Errorf("a connection made while the guard was away: %s (%s)", r.Seen, r.Detail)
	}
	s.Sees("worker", "dns 198.51.100.54 denied.example.org A -> NXDOMAIN", "tcp ssh.example.org:22 -> data")
	if now := s.Inspect("worker"); now.ID != worker.ID || now.Started != worker.Started {
		t.Error("the worker was restarted")
	}
	if g := s.Inspect("guard"); g.State != "running" {
		t.Errorf("the guard is %s", g.State)
	}
}

func TestB29_UnresolvableNameStopsNothing(t *testing.T) {
	s := scenario.New(t, "restricted", "a name that doesn't resolve, and resolvers that don't answer, never stop the start")
	s.Internet.Answer("allowed.example.org", testnet.Silent)
	s.Cleanup(func() {
		s.Internet.Answer("allowed.example.org", testnet.A(testnet.Allowed), testnet.A(testnet.Allowed6))
	})
	d := s.Up()
	if d.Counted > 20*time.Second {
		t.Errorf("up took %v", d.Took)
	}
	s.Sees("worker", "dns 198.51.100.54 denied.example.org A -> NXDOMAIN", "loop 127.0.0.1:8080 -> ok")
	s.Internet.Answer("allowed.example.org", testnet.A(testnet.Allowed))
	s.Eventually("the name resolves again", func() bool {
		return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
	})
}

func TestB21_EachRestartedAlone(t *testing.T) {
	s := scenario.New(t, "restricted", "restarting a container with the engine's own command, each alone, opens nothing, and what needs no repair works again")
	s.Up()
	for _, service := range []string{"worker", "guard"} {
		s.Internet.Reset()
		if err := s.Restart(service); err != nil {
			t.Fatal(err)
		}
		s.SeesEarly("worker", closedAtOnce...)
		s.Eventually("after a restart of the "+service+" alone the network works", func() bool {
			return s.ProbeEarly("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
		})
		silent(s, testnet.Evil)
	}
	before := s.Containers()
	s.Up()
	for service, c := range s.Containers() {
		if c.ID != before[service].ID {
			t.Errorf("%s was made anew", service)
		}
	}
}

func TestB21_GuardStopsAnswering(t *testing.T) {
	s := scenario.New(t, "restricted", "while a guard is frozen nothing passes, up says that it is not ready, and the next up repairs it")
	s.Up()
	s.Kill("guard", "SIGSTOP")
	s.Internet.Reset()
	s.Sees("worker", closedAtOnce...)
	for _, r := range s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=500ms", "tcp 198.51.100.66:443 limit=500ms", "dns 198.51.100.54 allowed.example.org A limit=500ms") {
		if r.Seen != "TIMEOUT" && r.Seen != "ECONNREFUSED" {
			t.Errorf("with a frozen guard: %s %v: %s", r.Probe, r.Args, r.Seen)
		}
	}
	if c := s.Internet.Counts().Packets; len(c) != 0 {
		t.Errorf("packets left: %v", c)
	}
	s.Remove("worker")
	ended := make(chan scenario.Done)
	go func() { ended <- s.Run("up", "--wait-timeout", "3s") }()
	s.Eventually("the worker waits for the guard", func() bool { return runs(s, "worker") })
	s.SeesEarly("worker", closedAtOnce...)
	d := <-ended
	if d.Code != 1 || !strings.Contains(d.Err, "not ready after 3s") || !strings.Contains(d.Err, "guard doesn't answer") {
		t.Errorf("up with a frozen guard: exit code %d\n%s", d.Code, d.Err)
	}
	if _, ok := s.Containers()["worker"]; ok {
		t.Error("the worker that up made and that didn't get ready is still there")
	}
	s.Up("--wait-timeout", "20s")
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "connect 198.51.100.66:9000 -> ECONNREFUSED")
}
