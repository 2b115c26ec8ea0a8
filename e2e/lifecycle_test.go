//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/room/handover"
)

// starting is an `up` that runs.
type starting struct {
	out  bytes.Buffer
	done chan error
}

func startUp(s *scenario.Scenario, args ...string) *starting {
	s.Helper()
	u := &starting{done: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	s.Cleanup(cancel)
	cmd := s.Command(ctx, append([]string{"up"}, args...)...)
	cmd.Stdout, cmd.Stderr = &u.out, &u.out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func() { u.done <- cmd.Wait() }()
	return u
}

// runs tells whether a service's container runs.
func runs(s *scenario.Scenario, service string) bool {
	return s.Containers()[service].State == "running"
}

func TestB21_GuardFrozenDuringStart(t *testing.T) {
	s := scenario.New(t, "restricted", "a guard that is frozen while the workshop starts lets no worker through its gate; when it goes on, so does up")
	s.Up()
	for _, starts := range []bool{true, false} {
		s.Remove("worker")
		if starts {
			// A frozen room keeps it from being ready before it is frozen itself.
			s.Kill("room", "SIGSTOP")
			s.Stop("guard")
		} else {
			s.Kill("guard", "SIGSTOP")
		}
		s.Internet.Reset()
		up := startUp(s, "--wait-timeout", "60s")
		if starts {
			s.Eventually("the guard is there", func() bool { return runs(s, "guard") })
			s.Kill("guard", "SIGSTOP")
			s.Kill("room", "SIGCONT")
		}
		s.Eventually("the worker's gate is there", func() bool { return runs(s, "worker") })
		s.SeesEarly("worker", closedAtOnce...)
		select {
		case err := <-up.done:
			t.Fatalf("starts %v: up ended below a frozen guard: %v\n%s", starts, err, &up.out)
		case <-time.After(time.Second):
		}
		if strings.Contains(s.Logs("worker"), "READY") {
			t.Errorf("starts %v: the worker passed its gate without a guard", starts)
		}
		if c := s.Internet.Counts().Packets; len(c) != 0 {
			t.Errorf("starts %v: packets left: %v", starts, c)
		}
		s.Kill("guard", "SIGCONT")
		if err := <-up.done; err != nil {
			t.Fatalf("starts %v: up: %v\n%s", starts, err, &up.out)
		}
		s.Sees("worker", append([]string{"http https://allowed.example.org/ ca=/ca.pem -> 200"}, closedAtOnce...)...)
	}
}

// A policy can't be given to a guard that hangs: up says so, and the next one
// has a guard with the new policy.
func TestB21_GuardFrozenBeforeAReload(t *testing.T) {
	s := scenario.New(t, "restricted", "up with an edited line finds a guard that hangs, stops it, and the next up starts it with the new line")
	s.Up()
	s.Kill("guard", "SIGSTOP")
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:2222\n")
	d := s.Expect(1, "up", "--wait-timeout", "4s")
	if !strings.Contains(d.Err, "the guard doesn't answer after 4s") || !strings.Contains(d.Err, "workshop up") || d.Counted > 9*time.Second {
		t.Errorf("up with a frozen guard:\n%s", d.Err)
	}
	s.Sees("worker", closedAtOnce...)
	s.Up()
	s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data", "tcp 198.51.100.22:22 send=x -> "+cutOff)
}

func TestB29_GuardKilledUnderLoad(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "a guard that is killed again and again under load lets nothing else out, and serves again by itself")
	s.Up()
	worker := lives(s)["worker"]
	container := s.Inspect("worker")
	s.Internet.Reset()
	var all sync.WaitGroup
	for range 2 {
		for _, p := range []string{
			"http https://allowed.example.org/ ca=/ca.pem for=4s limit=4s", "tcp ssh.example.org:22 for=4s limit=4s",
			"tcp 198.51.100.66:443 for=4s limit=1s", "tcp 198.51.100.66:22 for=4s limit=1s", "connect 198.51.100.66:9000 for=4s",
		} {
			all.Go(func() {
				for _, r := range s.ProbeLoop(container, p) {
					if r.Probe == "tcp" && strings.HasPrefix(r.Args[0], testnet.Evil) && strings.Contains(r.Seen, "data") || r.Probe == "connect" && strings.Contains(r.Seen, "open") {
						t.Errorf("under load: %s %v: %s", r.Probe, r.Args, r.Seen)
					}
				}
			})
		}
	}
	for range 3 {
		time.Sleep(800 * time.Millisecond)
		s.Crash("guard")
		s.Eventually("the guard is back", func() bool { return runs(s, "guard") })
	}
	all.Wait()
	silent(s, testnet.Evil)
	s.Eventually("the network works again", func() bool {
		return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
	})
	s.Sees("worker", append([]string{"tcp ssh.example.org:22 -> data"}, closedAtOnce...)...)
	if lives(s)["worker"] != worker {
		t.Error("the worker was made anew or restarted")
	}
}

// A machine that sleeps freezes everything, or, as the engine's pause does, a
// part of it.
func TestB21_AsleepAndAwake(t *testing.T) {
	s := scenario.New(t, "restricted", "while containers are frozen, all or some, nothing leaves; awake again, everything works without up")
	s.Up()
	before := lives(s)
	for _, frozen := range [][]string{{"worker", "room", "guard"}, {"guard"}, {"room"}, {"room", "guard"}} {
		s.Internet.Reset()
		stop := attacker(s)
		for _, service := range frozen {
			s.Freeze(service)
		}
		if frozen[0] != "worker" {
			s.Sees("worker", closedAtOnce...)
			for _, r := range s.Probe("worker", "tcp 198.51.100.66:443 limit=500ms", "dns 198.51.100.54 denied.example.org A limit=500ms") {
				if r.Seen == "data" || r.Seen == testnet.Evil {
					t.Errorf("%v frozen: %s %v: %s", frozen, r.Probe, r.Args, r.Seen)
				}
			}
		}
		time.Sleep(time.Second)
		silent(s, testnet.Evil)
		for _, service := range frozen {
			s.Thaw(service)
		}
		s.Eventually("awake again, the network works", func() bool {
			return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
		})
		s.Sees("worker", append([]string{"tcp ssh.example.org:22 -> data"}, closedAtOnce...)...)
		stop()
		silent(s, testnet.Evil)
	}
	goOn(s, before, "worker", "room", "guard")
	s.Up()
	goOn(s, before, "worker", "room", "guard")
}

func TestB21_LiveChangeEndsWithTheGuard(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := scenario.New(t, "restricted", "what a live change opened is gone when the guard was stopped, crashed or killed; live denies and spent budgets are not")
	s.Internet.Answer("budget.example.org", testnet.A(testnet.Allowed))
	s.Internet.Answer("closed.example.org", testnet.A(testnet.Allowed))
	edit(s, "- ssh.example.org:22\n", "- ssh.example.org:22\n        - {host: budget.example.org, upload: 1K/d}\n        - closed.example.org\n")
	s.Up()
	s.Sees("worker", "http http://closed.example.org/ -> 200", "http http://budget.example.org/ -> 200")
	says(s, s.Expect(0, "firewall", "deny", "closed.example.org"), "until the workshop stops")
	long := "http http://budget.example.org/" + strings.Repeat("x", 400) // spends it in three
	s.Eventually("the budget is spent", func() bool { return s.Probe("worker", long)[0].Seen == "403" })
	for name, end := range map[string]func(){
		"stopped and started": func() {
			s.Stop("guard")
			s.Sees("worker", closedAtOnce...)
			for _, r := range s.Probe("worker", "tcp ssh.example.org:2222 send=x limit=500ms", "tcp 198.51.100.66:443 limit=500ms") {
				if r.Seen == "data" {
					t.Errorf("without a guard: %s %v: %s", r.Probe, r.Args, r.Seen)
				}
			}
			if err := s.Start("guard"); err != nil {
				t.Fatal(err)
			}
		},
		"crashed": func() { s.Crash("guard") },
		"restarted": func() {
			if err := s.Restart("guard"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s.Expect(0, "firewall", "allow", "ssh.example.org:2222")
		s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data")
		open := hold(s, "worker", "ssh.example.org:2222", testnet.SSH, 2222, "20s")
		end()
		if r := open(); r.Seen != "ECONNRESET" && r.Seen != "EOF" {
			t.Errorf("%s: the connection of the live change: %s (%s)", name, r.Seen, r.Detail)
		}
		s.Eventually("the guard is back", func() bool {
			return s.Probe("worker", "http https://allowed.example.org/ ca=/ca.pem limit=2s")[0].Seen == "200"
		})
		s.Sees("worker", "tcp 198.51.100.22:2222 send=x -> ECONNREFUSED", "tcp ssh.example.org:22 -> data",
			"lookup closed.example.org -> NXDOMAIN", "http http://closed.example.org/ connect=198.51.100.10:80 -> 403", "http http://budget.example.org/ -> 403")
	}
	says(s, s.Expect(0, "firewall", "reload", "--reset"), "1 live change dropped", "what was spent is forgotten")
	s.Sees("worker", "http http://closed.example.org/ -> 200", "http http://budget.example.org/ -> 200")
}

func TestB60_UnreadableIsClosed(t *testing.T) {
	s := scenario.New(t, "restricted", "a room of which nobody knows what narrows it is closed, which ps and show say, until firewall reload")
	s.Up()
	before := lives(s)
	s.Expect(0, "firewall", "deny", "ssh.example.org")
	damageKept(s)
	s.Crash("guard")
	s.Eventually("the guard is back", func() bool { return saidClosed(s) })
	d := s.Expect(0, "ps")
	says(s, d, "worker: closed, no network: live denies and spent upload budgets can't be read", "`workshop firewall reload`", "restricted, closed")
	says(s, s.Expect(0, "firewall", "show"), "worker: closed, no network", "no slot has a valid checksum")
	says(s, s.Expect(0, "firewall", "log"), "the previous guard's record can't be read: no slot has a valid checksum: closed until `workshop firewall reload`")
	for _, r := range s.Probe("worker", "tcp 198.51.100.22:22 send=x limit=300ms", "dns 127.0.0.1 allowed.example.org A limit=300ms") {
		if r.Seen == "data" || r.Seen == testnet.Allowed {
			t.Errorf("closed: %s %v: %s", r.Probe, r.Args, r.Seen)
		}
	}
	says(s, s.Expect(0, "firewall", "reload"), "worker: opened, without the live denies and spent upload budgets that couldn't be read")
	s.Eventually("the room is served", func() bool { return served(s) })
	if d := s.Expect(0, "ps"); strings.Contains(d.Err, "closed") {
		t.Errorf("ps after the reload:\n%s", d.Err)
	}
	goOn(s, before, "worker", "room")
}

// Without a valid workshop.yaml ps says what it doesn't know, and why.
func TestPsOfAnInvalidFile(t *testing.T) {
	s := scenario.New(t, "none", "ps of a workshop whose file has become invalid says so")
	s.Up()
	s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "image: ", "image: ${NEED:?}", 1))
	says(s, s.Expect(0, "ps"), "workshop: warning: workshop.yaml is invalid: the variable NEED is not set; so the networks and ports of workers are not known: `workshop validate`")
	if d := s.Expect(0, "ps", "--quiet"); d.Err != "" {
		t.Errorf("ps --quiet says\n%s", d.Err)
	}
}

// saidClosed tells whether ps says how a closed room is opened.
func saidClosed(s *scenario.Scenario) bool {
	s.Helper()
	return strings.Contains(s.Expect(0, "ps").Err, "firewall reload")
}

// served tells whether the worker reaches what its file allows.
func served(s *scenario.Scenario) bool {
	s.Helper()
	return s.Probe("worker", "tcp ssh.example.org:22 send=x limit=2s")[0].Seen == "data"
}

// damageKept overwrites what the room keeps for the guard, as nothing can that
// doesn't have the descriptor.
func damageKept(s *scenario.Scenario) {
	s.Helper()
	room := fmt.Sprintf("/proc/%d/fd/", s.Pid("room"))
	files, err := os.ReadDir(room)
	if err != nil {
		s.Fatal(err)
	}
	damaged := 0
	for _, f := range files {
		if to, _ := os.Readlink(room + f.Name()); strings.HasPrefix(to, "/memfd:workshop-kept") {
			kept, err := os.OpenFile(room+f.Name(), os.O_WRONLY, 0)
			if err == nil {
				_, err = kept.Write(make([]byte, handover.KeptSize))
				kept.Close()
			}
			if err != nil {
				s.Fatal(err)
			}
			damaged++
		}
	}
	if damaged != 1 {
		s.Fatalf("the room keeps %d files, want 1", damaged)
	}
	stored := fmt.Sprintf("/proc/%d/root/run/workshop/%s", s.Pid("room"), handover.StoredFile)
	if err := os.WriteFile(stored, make([]byte, handover.KeptSize), 0o644); err != nil {
		s.Fatal(err)
	}
}

// TestB60_ClosedIsOpenedAfterUp: where more than lines differs, reload says that it
// needs `up`, which opens nothing.
func TestB60_ClosedIsOpenedAfterUp(t *testing.T) {
	scenario.OnlyNamespace(t, "it gives the machine an address, which others on Docker's would see")
	s := scenario.New(t, "restricted", "a room that is closed, on a machine that has another address since: reload asks for up, up leaves the room closed, and then reload opens it")
	s.Up()
	s.Expect(0, "firewall", "deny", "ssh.example.org")
	damageKept(s)
	s.Crash("guard")
	s.Eventually("the guard is back", func() bool { return saidClosed(s) })
	if out, err := exec.Command("ip", "address", "add", "198.51.100.77/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	defer func() { _ = exec.Command("ip", "address", "del", "198.51.100.77/32", "dev", "lo").Run() }()
	for _, reset := range []string{"--reset=false", "--reset"} {
		says(s, s.Expect(1, "firewall", "reload", reset), "this needs `workshop up`")
	}
	s.Up()
	if !saidClosed(s) {
		t.Error("up opened the room")
	}
	if seen := s.Probe("worker", "tcp 198.51.100.22:22 send=x limit=300ms")[0].Seen; seen == "data" {
		t.Error("the room is open")
	}
	says(s, s.Expect(0, "firewall", "reload", "--reset"), "worker: opened")
	s.Eventually("the room is served", func() bool { return served(s) })
}

func TestB05_LogsAreBounded(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker that prints without end fills three files of its log, and logs and up go on working")
	s.Up()
	before := lives(s)
	// Its main process is ours and prints little; the output is its all the same.
	out, err := os.OpenFile(filepath.Join("/proc", strconv.Itoa(s.Pid("worker")), "fd", "1"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 1000) + "\n"
	for range 60_000 {
		if _, err := out.WriteString(line); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := out.WriteString("the end\n"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	s.Eventually("the engine has written it", func() bool {
		return strings.Contains(s.Expect(0, "logs", "--tail", "1", "worker").Out, "the end")
	})
	files, err := filepath.Glob(s.Inspect("worker").Log.Path + "*")
	most := 3
	if scenario.TheEngine() == scenario.Podman { // which keeps one, and begins it anew
		most = 1
	}
	if err != nil || len(files) < min(2, most) {
		t.Fatalf("log files %q, %v", files, err)
	}
	total := int64(0)
	for _, f := range files {
		i, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		total += i.Size()
	}
	if len(files) > most || total > 31<<20 {
		t.Errorf("%d files, %d bytes", len(files), total)
	}
	for _, service := range []string{"guard", "room"} {
		if l := s.Inspect(service).Log; l.MaxSize != 8<<20 && l.MaxSize != 8_000_000 || l.MaxFiles != most {
			t.Errorf("%s: %+v", service, l)
		}
	}
	// The READY line is gone; up finds out otherwise.
	s.Up()
	goOn(s, before, "worker", "room", "guard")
}
