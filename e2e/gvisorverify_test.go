//go:build linux

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/verify"
)

// ofAWorkerOnGVisor are how many promises verify judges held of a worker with a network, without
// --live and --disruptive: all that say what a worker has, but those that are tested in part.
const ofAWorkerOnGVisor = 25

// verifiedUnnoticed runs verify, which must find nothing broken, send nothing to the internet
// and restart nothing.
func verifiedUnnoticed(s *scenario.Scenario) verify.Report {
	s.Helper()
	s.Internet.Reset()
	before := lives(s)
	r, code := verified(s)
	if n := len(s.Internet.Counts().Conns) + len(s.Internet.Counts().Queries); n != 0 || code != 0 {
		s.Errorf("exit code %d, and the internet got %d connections and questions", code, n)
	}
	for service, now := range lives(s) {
		if before[service] != now {
			s.Errorf("%s is %s, was %s", service, now, before[service])
		}
	}
	return r
}

// TestGVisorVerify: of a worker on gVisor the same is judged as of one that has this machine's
// kernel, and B13 besides.
func TestGVisorVerify(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := onGVisor(t, func() *scenario.Scenario {
		s := scenario.New(t, "verify", "verify judges of workers on gVisor what it judges of others, sends nothing out and finds them sound")
		prepareVerify(s)
		return s
	})
	if s == nil {
		return
	}
	r := verifiedUnnoticed(s)
	held := map[string]int{}
	for _, l := range r.Lines {
		m := verify.MethodOf(l.Promise)
		inPart := slices.Contains(m.Kinds, verify.Disruptive) && l.Promise != "B5" || slices.Contains(m.Kinds, verify.Elsewhere) || m.Partly && l.Promise != "B13"
		switch {
		case l.Verdict == verify.Held:
			held[l.Worker]++
			if l.Control == "" {
				t.Errorf("%s of %s is held without a control", l.Promise, l.Worker)
			}
		case l.Verdict == verify.Broken, !inPart && !strings.HasPrefix(l.Why, "network: none"):
			t.Errorf("%s of %s is %s: %s", l.Promise, l.Worker, l.Verdict, l.Why)
		}
	}
	for _, worker := range []string{"first", "second", "third", "fourth", "fifth"} {
		want := ofAWorkerOnGVisor
		if worker == "fourth" {
			want-- // B31: no guard dials for it
		}
		if held[worker] != want {
			t.Errorf("%d promises of %s are held, want %d", held[worker], worker, want)
		}
	}
}

// otherwise is a script in the place of gVisor's runtime that gives the worker what it mounts
// read-only to write. What the engine shows is as asked.
const otherwise = `for a; do [ "$before" = --bundle ] && [ -f "$a/config.json" ] && sed -i 's/"readonly":true/"readonly":false/; s/"ro"/"rw"/g' "$a/config.json"; before=$a; done
exec `

// TestGVisorVerifyBroken: verify sees from outside what a runtime does otherwise, and what is
// changed of a worker that runs.
func TestGVisorVerifyBroken(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	runsc := scenario.Runsc(t)
	if !scenario.Alone(t) {
		return
	}
	scenario.NewGVisorEngine(t, instead(t, otherwise+runsc+` "$@"`))
	s := scenario.New(t, "restricted", "verify finds broken what a runtime under gVisor's name does otherwise, and limits that were raised")
	withOwnKernel(s)
	s.Up()
	unlimited(t, s.Containers()["worker"].Pid)
	r, code := verified(s)
	var broken []string
	for _, l := range r.Lines {
		if l.Verdict == verify.Broken {
			t.Logf("%s of %s: %s", l.Promise, l.Worker, l.Why)
			broken = append(broken, l.Promise)
		}
	}
	for _, id := range []string{"B3", "B5"} {
		if !slices.Contains(broken, id) {
			t.Errorf("%s isn't found to be broken, but %v", id, broken)
		}
	}
	if code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
}

// unlimited takes the limit of processes of a process's control group away.
func unlimited(t *testing.T, pid int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	dir := ""
	for line := range strings.Lines(string(text)) {
		switch f := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(f) < 3:
		case f[1] == "pids":
			dir = "/sys/fs/cgroup/pids" + f[2]
		case f[0] == "0" && dir == "":
			dir = "/sys/fs/cgroup" + f[2]
		}
	}
	if err := os.WriteFile(dir+"/pids.max", []byte("max"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGVisorVerifyDisruptive: what kills and fills is done to a copy whose workers are on gVisor,
// too: beyond its limits one ends, and nobody else does.
func TestGVisorVerifyDisruptive(t *testing.T) {
	scenario.OnlyDocker(t, "gVisor is a runtime of Docker's")
	s := restrictedOnGVisor(t, "verify --disruptive judges a worker on gVisor by a copy, and leaves the project untouched")
	if s == nil {
		return
	}
	before := s.Containers()
	r, code := verified(s, "--disruptive", "--live")
	heldInCopy(t, r)
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for service, c := range s.Containers() {
		if b := before[service]; b.ID != c.ID || b.Started != c.Started || b.Pid != c.Pid {
			t.Errorf("%s was restarted", service)
		}
	}
}
