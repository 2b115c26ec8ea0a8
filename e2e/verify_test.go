//go:build linux

package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/internal/verify"
)

// verified runs verify, and returns what it reports and its exit code.
func verified(s *scenario.Scenario, args ...string) (r verify.Report, code int) {
	s.Helper()
	d := s.Run(append([]string{"verify", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(d.Out), &r); err != nil {
		s.Fatalf("verify: exit code %d, %v\n%s%s", d.Code, err, d.Out, d.Err)
	}
	return r, d.Code
}

// prepareVerify completes the directory and environment of testdata/verify.
func prepareVerify(s *scenario.Scenario) {
	s.Write("out/.git/hooks/sample", "")
	s.Env = append(s.Env, "VERIFY_TOKEN=0123456789abcdef", "ANTHROPIC_API_KEY=sk-of-who-starts-it")
}

// TestVerify: five workers of a workshop as it should be. Every promise of which the table
// says that it can be tested without disruption is held, and no packet leaves the guard.
func TestVerify(t *testing.T) {
	s := scenario.New(t, "verify", "verify says of every promise whether it is held, in less than five seconds, and sends nothing out")
	prepareVerify(s)
	s.Up()
	s.Internet.Reset()
	before := s.Containers()
	d := s.Run("verify", "--format", "json")
	if d.Code != 0 {
		t.Errorf("exit code %d\n%s", d.Code, d.Err)
	}
	t.Logf("five workers: %v", d.Took)
	if d.Counted > 5*time.Second {
		t.Errorf("it took %v", d.Counted)
	}
	if n := len(s.Internet.Counts().Conns) + len(s.Internet.Counts().Queries); n != 0 {
		t.Errorf("the internet got %d connections and questions", n)
	}
	for service, c := range s.Containers() {
		if b := before[service]; b.ID != c.ID || b.Started != c.Started {
			t.Errorf("%s was restarted", service)
		}
	}
	var r verify.Report
	if err := json.Unmarshal([]byte(d.Out), &r); err != nil {
		t.Fatalf("%v\n%s%s", err, d.Out, d.Err)
	}
	if r.Broken != 0 || r.Held == 0 || r.NotTested == 0 {
		t.Errorf("%d held, %d broken, %d not tested", r.Held, r.Broken, r.NotTested)
	}
	about := map[string]bool{}
	for _, l := range r.Lines {
		about[l.Promise] = true
		m := verify.MethodOf(l.Promise)
		partly := slices.Contains(m.Kinds, verify.Disruptive) && l.Promise != "B5" || slices.Contains(m.Kinds, verify.Elsewhere) || m.Partly
		switch {
		case l.Verdict == verify.Broken:
			t.Errorf("%s of %s is broken: %s", l.Promise, l.Worker, l.Why)
		case l.Verdict == verify.NotTested && !partly && !strings.HasPrefix(l.Why, "network: none"):
			t.Errorf("%s of %s is not tested: %s", l.Promise, l.Worker, l.Why)
		case l.Verdict == verify.Held && l.Control == "":
			t.Errorf("%s of %s is held without a control", l.Promise, l.Worker)
		case l.Promise == "B34" && l.Worker == "first" && !strings.Contains(l.Outside, "the guard denied a request at the endpoint api (request); the guard denied TLS for gist.example.org (endpoint)"):
			t.Errorf("no request was denied at an endpoint: %+v", l)
		}
	}
	for _, p := range promise.All() {
		if !about[p.ID] {
			t.Errorf("nothing is said of %s", p.ID)
		}
	}
}

// TestVerifyIsNoWish: what verify and explain try, no worker asked for.
func TestVerifyIsNoWish(t *testing.T) {
	scenario.Once(t, "the guard knows it by the source, on every engine")
	s := scenario.New(t, "restricted", "firewall suggest --denied has what a worker tried, and nothing that verify or explain did")
	s.Up()
	verifiedWithoutWish(t, s)
}

// TestVerifyLive: with --live an allowed host is dialled, also by way of another
// address. It is the control: where it can't be reached, the promise is not tested.
func TestVerifyLive(t *testing.T) {
	s := scenario.New(t, "verify", "verify --live dials allowed hosts, and what isn't reached tests nothing")
	prepareVerify(s)
	s.Up()
	byName := func(r verify.Report) (l verify.Line) {
		for _, l = range r.Lines {
			if l.Promise == "B24" && l.Worker == "first" {
				return l
			}
		}
		t.Fatal("nothing is said of B24")
		return l
	}
	s.Internet.Answer("allowed.example.org", testnet.A(testnet.Allowed).For(1))
	t.Cleanup(func() { s.Internet.Answer("allowed.example.org", testnet.A(testnet.Allowed)) })
	r, code := verified(s, "--live", "first")
	if l := byName(r); code != 0 || l.Verdict != verify.Held || !strings.Contains(l.Control, "allowed.example.org:443: handshake") {
		t.Errorf("exit code %d, %+v", code, l)
	}
	if n := s.Conns(testnet.Allowed, 443); n != 2 { // by its own address, and by another
		t.Errorf("the allowed host got %d connections, want 2", n)
	}
	for _, l := range r.Lines {
		if slices.Contains([]string{"second", "third", "fourth", "fifth"}, l.Worker) {
			t.Errorf("%s is about %s", l.Promise, l.Worker)
		}
	}
	s.Internet.Answer("allowed.example.org", testnet.NXDomain)
	time.Sleep(1200 * time.Millisecond) // the answer's TTL
	r, code = verified(s, "--live", "first")
	if l := byName(r); code != 0 || l.Verdict != verify.NotTested || !strings.Contains(l.Why, "the control failed") {
		t.Errorf("the host can't be reached: exit code %d, %+v", code, l)
	}
}

// TestVerifyOfAHostileWorker: a worker that kills each probe keeps its promises from
// being tested; none of them is held for that, and none is broken.
func TestVerifyOfAHostileWorker(t *testing.T) {
	s := scenario.New(t, "verify", "what a worker keeps from being tested is neither held nor broken")
	prepareVerify(s)
	// Nothing is forked: a probe lives for less than a shell's round with a process each.
	s.Write("out/kill.pl", `$| = 1; print "begun";
while (1) { for (glob "/proc/[0-9]*") {
	open my $f, "<", "$_/cmdline" or next;
	kill 9, substr $_, 6 if join(" ", split /\0/, <$f> // "") =~ m{/workshop-init probe};
} }
`)
	s.Up()
	kills := s.Command(t.Context(), "exec", "first", "--", "perl", "/workspace/out/kill.pl")
	out, err := kills.StdoutPipe()
	if err == nil {
		err = kills.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kills.Process.Kill(); _ = kills.Wait() }()
	if _, err := io.ReadFull(out, make([]byte, len("begun"))); err != nil {
		t.Fatal(err)
	}
	for range 5 { // it may be too late once
		r, code := verified(s, "first")
		killed := false
		for _, l := range r.Lines {
			if l.Verdict == verify.Broken {
				t.Fatalf("exit code %d, %+v", code, l)
			}
			if l.Worker == "first" && l.Promise == "B22" {
				killed = l.Verdict == verify.NotTested
			}
		}
		if killed {
			return
		}
	}
	t.Error("no probe was killed: the test shows nothing")
}

// TestVerifyDisruptive: what kills, fills and floods is done to a copy of the project,
// of which nothing is left. The project and what runs of it stay as they are.
func TestVerifyDisruptive(t *testing.T) {
	s := scenario.New(t, "verify", "verify --disruptive kills and fills a copy, and leaves the project untouched")
	prepareVerify(s)
	s.Up()
	before, files := s.Containers(), tree(t, s.Dir)
	r, code := verified(s, "--disruptive", "--live", "first")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	heldInCopy(t, r)
	if d := cmp.Diff(files, tree(t, s.Dir)); d != "" {
		t.Errorf("the project changed:\n%s", d)
	}
	for service, c := range s.Containers() {
		if b := before[service]; b.ID != c.ID || b.Started != c.Started || b.Pid != c.Pid {
			t.Errorf("%s was restarted", service)
		}
	}
	if d := s.Expect(0, "ls", "--format", "json"); strings.Contains(d.Out, "verify-") {
		t.Errorf("a copy is left: %s", d.Out)
	}
}

// heldInCopy expects that what is disruptive was tested in a copy, and is held.
func heldInCopy(t *testing.T, r verify.Report) {
	t.Helper()
	tested := map[string]bool{}
	for _, l := range r.Lines {
		switch {
		case l.Verdict == verify.Broken, l.Copy && l.Verdict != verify.Held:
			t.Errorf("%+v", l)
		case l.Copy:
			tested[l.Promise] = true
		case strings.Contains(l.Why, "disruptive"):
			t.Errorf("%s of %s is still not tested: %s", l.Promise, l.Worker, l.Why)
		}
	}
	for _, id := range []string{"B5", "B21", "B27", "B29", "B60"} {
		if !tested[id] {
			t.Errorf("%s was not tested in a copy", id)
		}
	}
}

// tree has the files of a directory, with their contents, modes and times.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte(nil)
		if info.Mode().IsRegular() {
			if text, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), sha256.Sum256(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVerifyOfABreak is for `go run ./e2e/breaks/run -verify`: it expects that verify
// finds what was broken.
func TestVerifyOfABreak(t *testing.T) {
	broken := strings.Fields(os.Getenv("WORKSHOP_VERIFY_BROKEN"))
	if len(broken) == 0 {
		t.Skip("nothing is broken: go run ./e2e/breaks/run -verify")
	}
	s := scenario.New(t, "verify", "verify finds a promise that is broken in what runs")
	prepareVerify(s)
	if scenario.TheEngine() == scenario.Namespace { // where mounts are handed on to whoever shares them
		for _, args := range [][]string{{"--bind", s.Dir, s.Dir}, {"--make-shared", s.Dir}} {
			if out, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
				t.Fatalf("mount %v: %v\n%s", args, err, out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", "--recursive", s.Dir).Run() })
		}
	}
	s.Up()
	r, code := verified(s, "--live")
	if code != 4 {
		t.Errorf("exit code %d, want 4", code)
	}
	var found []string
	for _, l := range r.Lines {
		if l.Verdict == verify.Broken {
			t.Logf("%s of %s: %s", l.Promise, l.Worker, l.Why)
			found = append(found, l.Promise)
		}
	}
	for _, id := range broken {
		if !slices.Contains(found, id) {
			t.Errorf("%s isn't found to be broken, but %v", id, found)
		}
	}
}
