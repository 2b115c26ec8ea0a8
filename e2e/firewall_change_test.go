//go:build linux

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// says reports a text that is missing in what a command printed.
func says(s *scenario.Scenario, d scenario.Done, texts ...string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(d.Out+d.Err, text) {
			s.Errorf("%q is not in:\n%s%s", text, d.Out, d.Err)
		}
	}
}

// by gives programs an empty state directory and no continuous integration.
func by(s *scenario.Scenario) *scenario.Scenario {
	s.Env = append(s.Env, "XDG_STATE_HOME="+s.TempDir(), "CI=", "GITHUB_ACTIONS=", "GITLAB_CI=", "TF_BUILD=")
	return s
}

func TestB27_LiveChange(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "restricted", "allow opens at once, and when its time is over the connection is cut; deny cuts at once; no container is touched"))
	s.Up()
	before := lives(s)
	s.Sees("worker", "connect ssh.example.org:2222 -> ECONNREFUSED", "dns 198.51.100.54 denied.example.org A -> NXDOMAIN")
	d := s.Expect(0, "firewall", "allow", "ssh.example.org:2222", "denied.example.org", "--for", "7s")
	began := testutil.Now()
	says(s, d, "allowed ssh.example.org:2222 for worker until ", "(7s)", "to take it back: `workshop firewall reload --reset`")
	s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data", "http https://denied.example.org/ ca=/ca.pem -> 200")
	held := hold(s, "worker", "ssh.example.org:2222", testnet.SSH, 2222, "20s")
	says(s, s.Expect(0, "ps"), "2 live changes: `workshop firewall show`")
	if r := held(); r.Seen != "ECONNRESET" || testutil.Since(began) > 12*time.Second {
		t.Errorf("after its time: %s (%s) after %v", r.Seen, r.Detail, testutil.Since(began))
	}
	asked := s.Internet.Asked("denied.example.org")
	s.Sees("worker", "connect ssh.example.org:2222 -> ECONNREFUSED", "dns 198.51.100.54 denied.example.org A -> NXDOMAIN")
	if s.Internet.Asked("denied.example.org") != asked {
		t.Error("a name was asked for after its time")
	}

	held = hold(s, "worker", "ssh.example.org:22", testnet.SSH, 22, "20s")
	d = s.Expect(0, "firewall", "deny", "ssh.example.org")
	says(s, d, "denied ssh.example.org for worker until the workshop stops, 1 connection ended")
	if r := held(); r.Seen != "ECONNRESET" {
		t.Errorf("denied: %s (%s)", r.Seen, r.Detail)
	}
	s.Sees("worker", "lookup ssh.example.org -> NXDOMAIN", "tcp 198.51.100.22:22 send=x -> "+cutOff, "http https://allowed.example.org/ ca=/ca.pem -> 200")
	says(s, s.Expect(0, "firewall", "deny", "ssh.example.org:22"), "ssh.example.org:22 is denied already: `workshop firewall deny ssh.example.org`; nothing changed")
	if d := s.Expect(0, "firewall", "show"); !regexp.MustCompile(`(?m)^  allow +ssh\.example\.org +22 +workshop\.yaml:\d+ +.*denied by .workshop firewall deny ssh\.example\.org.$`).MatchString(d.Out) || strings.Count(d.Out, "denied by") != 1 {
		t.Errorf("a line that does nothing now:\n%s", d.Out)
	}
	says(s, s.Up(), "1 live change: `workshop firewall show`")
	says(s, s.Expect(0, "firewall", "reload"), "nothing changed", "1 live change is still active and not in workshop.yaml: deny ssh.example.org (`workshop firewall show` lists, `workshop firewall reload --reset` drops)")
	says(s, s.Expect(0, "firewall", "reload", "--reset"), "1 live change dropped")
	s.Sees("worker", "tcp ssh.example.org:22 send=x -> data")

	s.Expect(0, "firewall", "deny", "ssh.example.org", "--for", "1h")
	if d := s.Expect(0, "firewall", "show"); !regexp.MustCompile(`(?m)^  allow +ssh\.example\.org +22 .*denied by .workshop firewall deny ssh\.example\.org., until .*$`).MatchString(d.Out) {
		t.Errorf("a line that does nothing for an hour:\n%s", d.Out)
	}
	s.Expect(0, "firewall", "reload", "--reset")

	// What the file allows needs no live line to be allowed again, and nothing to keep it.
	s.Expect(0, "firewall", "deny", "allowed.example.org:443")
	says(s, s.Expect(0, "firewall", "explain", "allowed.example.org:443"), "denied by a live change\n", "to allow  `workshop firewall allow allowed.example.org`")
	d = s.Expect(0, "firewall", "allow", "allowed.example.org")
	if want := "allowed allowed.example.org for worker again: allowed.example.org at workshop.yaml:9\n"; d.Out != want || d.Err != "" {
		t.Errorf("allowed again: %s%swant %s", d.Out, d.Err, want)
	}
	if d := s.Expect(0, "firewall", "show"); strings.Contains(d.Out, "live") {
		t.Errorf("a live line that the file has:\n%s", d.Out)
	}
	// What is saved is named no more.
	s.Expect(0, "firewall", "allow", "denied.example.org", "new.example.org:8443")
	says(s, s.Expect(0, "firewall", "allow", "denied.example.org", "--save"), "1 live change is still active and not in workshop.yaml: allow new.example.org:8443 (")
	s.Expect(0, "firewall", "reload", "--reset")

	// What would do nothing is said, what never opens is refused.
	says(s, s.Expect(0, "firewall", "allow", "allowed.example.org"), "is allowed already: allowed.example.org at workshop.yaml:9; nothing changed")
	says(s, s.Expect(4, "firewall", "allow", "x.gist.allowed.example.org", "gist.allowed.example.org", "new.example.org"), "gist.allowed.example.org is denied, and deny always wins: gist.allowed.example.org at workshop.yaml:1")
	s.Expect(4, "firewall", "allow", "169.254.169.254:80")
	s.Expect(0, "firewall", "allow", "private.example.org")
	s.Sees("worker", "dns 127.0.0.1 new.example.org A -> NXDOMAIN")

	// In memory alone: gone with the guard, and closed again.
	s.Expect(0, "firewall", "allow", "ssh.example.org:2222")
	s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data")
	s.Crash("guard")
	s.Eventually("the guard is back", func() bool {
		return s.Probe("worker", "tcp ssh.example.org:22 send=x limit=2s")[0].Seen == "data"
	})
	s.Sees("worker", "connect ssh.example.org:2222 -> ECONNREFUSED")
	if d := s.Expect(0, "ps"); strings.Contains(d.Err, "live change") {
		t.Errorf("live changes of a guard that ended:\n%s", d.Err)
	}
	goOn(s, before, "worker", "room")
}

func TestLiveChangeOfARoom(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "rooms", "a change for a worker is one for its room, and no other; both are said"))
	says(s, s.Expect(1, "firewall", "allow", "ssh.example.org:2222"), "is not up", "`workshop up`")
	s.Up()
	d := s.Expect(0, "firewall", "allow", "ssh.example.org:2222", "--worker", "second")
	says(s, d, "for first and second until the guard ends", "first and second share a room", "--save doesn't keep it: second has no allow list of its own", "for all of them: `--save` without --worker")
	s.Sees("first", "tcp ssh.example.org:2222 send=x -> data")
	s.Sees("third", "lookup ssh.example.org -> NXDOMAIN", "connect 198.51.100.22:2222 -> ECONNREFUSED")
	says(s, s.Expect(2, "firewall", "allow", "x.example.org", "--worker", "nobody"), `has no worker "nobody"`, "known: first, second, third\n")
	// A worker with a list of its own gets the line there (B40).
	d = s.Expect(0, "firewall", "allow", "ssh.example.org:22", "--worker", "third", "--save")
	says(s, d, "allow: [allowed.example.org, ssh.example.org:22], room: own", "reloaded: generation ")
	s.Sees("third", "tcp ssh.example.org:22 send=x -> data")
	s.Sees("first", "tcp ssh.example.org:2222 send=x -> data")

	s.Kill("guard", "SIGSTOP")
	started := testutil.Now()
	says(s, s.Expect(0, "ps"), "the guard doesn't answer within 1s")
	if took := testutil.Since(started); took > 5*time.Second {
		t.Errorf("ps waited %v for a guard that is stopped", took)
	}
	s.Kill("guard", "SIGCONT")

	none := by(scenario.New(t, "none", "a worker without network is told what to write"))
	none.Up()
	says(none, none.Expect(4, "firewall", "allow", "x.example.org"), "no worker of project", "`mode: restricted` and `allow: [HOST]` below `network:`")
}

func TestB27_Save(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "restricted", "--save writes the line, keeps what stands there, and what runs goes by it; reload cuts what is gone"))
	s.Up()
	before := lives(s)
	text := strings.Replace(s.Read("workshop.yaml"), "- ssh.example.org:22\n", "- ssh.example.org:22   # a comment\n        - allowed.example.org:7\n", 1)
	s.Write("workshop.yaml", text)
	says(s, s.Expect(0, "firewall", "reload"), "reloaded: generation ", "no connection ended")
	d := s.Expect(0, "firewall", "allow", "ssh.example.org:2222", "--save")
	says(s, d, "+  14 |         - ssh.example.org:2222", "reloaded: generation ")
	if want := strings.Replace(text, "- rebind.example.org\n      deny", "- rebind.example.org\n        - ssh.example.org:2222\n      deny", 1); s.Read("workshop.yaml") != want {
		t.Errorf("the file is now\n%s", s.Read("workshop.yaml"))
	}
	s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data")
	if d := s.Expect(0, "ps"); strings.Contains(d.Err, "live change") || strings.Contains(d.Err, "B8") {
		t.Errorf("ps after --save:\n%s", d.Err)
	}
	s.Expect(0, "firewall", "deny", "allowed.example.org:80", "--save")
	s.Sees("worker", "http http://allowed.example.org/ -> 403", "http https://allowed.example.org/ ca=/ca.pem -> 200")

	held := hold(s, "worker", "ssh.example.org:22", testnet.SSH, 22, "20s")
	edit(s, "- ssh.example.org:22   # a comment\n", "- ssh.example.org:7   # a comment\n")
	says(s, s.Expect(0, "firewall", "reload"), "reloaded: generation ", "1 connection ended")
	if r := held(); r.Seen != "ECONNRESET" {
		t.Errorf("the connection of a line that is gone: %s (%s)", r.Seen, r.Detail)
	}
	says(s, s.Expect(0, "firewall", "reload"), "nothing changed")
	goOn(s, before, "worker", "room", "guard")

	// More than lines is for up.
	edit(s, "dns: [198.51.100.53]", "dns: [198.51.100.53:53]")
	says(s, s.Expect(1, "firewall", "reload"), "this needs `workshop up`, because", "guard", "configuration changed")
	says(s, s.Expect(1, "firewall", "allow", "saved.example.org", "--save"), "this needs `workshop up`", "workshop.yaml has the line\n")
	// A live change is taken back, whatever the file says.
	s.Expect(0, "firewall", "deny", "allowed.example.org")
	s.Sees("worker", "lookup allowed.example.org -> NXDOMAIN")
	says(s, s.Expect(1, "firewall", "reload", "--reset"), "this needs `workshop up`", "1 live change dropped all the same")
	s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200")
	goOn(s, before, "worker", "room", "guard")
}

func TestLearn(t *testing.T) {
	scenario.NotRootless(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "restricted", "learning lets names pass and records them, says which promises don't hold, keeps the never-lists, and ends with the guard"))
	for _, env := range []string{"CI=true", "GITHUB_ACTIONS=true"} {
		s.Env = append(s.Env, env)
		says(s, s.Expect(4, "up", "--learn"), "--learn is refused: "+env, "nothing was started")
		s.Env = append(s.Env, strings.TrimSuffix(env, "true"))
	}
	if l := left(s); l != nil {
		t.Errorf("what is refused left %v", l)
	}
	d := s.Expect(0, "up", "--learn", "--for", "10m")
	says(s, d, "learning until ", "(10m)", "(B23)", "(B24)", "(B25)", "(B26, B31)", "`workshop firewall reload --reset`", "`workshop firewall suggest`")
	s.Sees("worker", "http https://denied.example.org/ ca=/ca.pem -> 200", "tcp ssh.example.org:2222 send=x -> data")
	// deny lines, addresses without a name, and what never opens
	s.Sees("worker", "dns 127.0.0.1 gist.allowed.example.org A -> NXDOMAIN", "tcp 198.51.100.66:9000 send=x -> "+cutOff, "http http://169.254.169.254/ -> 403", "tcp 169.254.169.254:8080 send=x -> "+cutOff,
		"dns 127.0.0.1 dns.google A -> NXDOMAIN")
	s.Eventually("the event", func() bool {
		for line := range strings.Lines(s.Logs("guard")) {
			var e struct{ Name, Verdict, Reason, Suggest string }
			if json.Unmarshal([]byte(line), &e) == nil && e.Name == "denied.example.org" && e.Verdict == "allow" && e.Reason == "learned" {
				return e.Suggest == "denied.example.org"
			}
		}
		return false
	})
	says(s, s.Expect(0, "ps"), "restricted, learning until ", "the allow list is not enforced for worker (B23–B25)")
	var entries []struct {
		Service  string
		NotHeld  []string   `json:"not_held"`
		Learning *time.Time `json:"learning_until"`
	}
	if err := json.Unmarshal([]byte(s.Expect(0, "ps", "--format", "json").Out), &entries); err != nil {
		t.Fatal(err)
	}
	notHeld := "B23 B24 B25"
	if scenario.TheEngine() == scenario.Podman { // on cgroups of version 1
		notHeld = "B6 " + notHeld
	}
	for _, e := range entries {
		if e.Service == "worker" && (strings.Join(e.NotHeld, " ") != notHeld || e.Learning == nil || time.Until(*e.Learning) > 10*time.Minute) {
			t.Errorf("ps: %+v", e)
		}
	}
	says(s, s.Up(), "learning until ", "the allow list is not enforced for worker (B23–B25)")
	if d := s.Expect(0, "exec", "worker", "--", "true"); strings.Count(d.Err, "\n") != 1 || !strings.Contains(d.Err, "learning until ") {
		t.Errorf("exec says %q", d.Err)
	}
	says(s, s.Expect(0, "firewall", "reload"), "nothing changed", "learning until ")

	closed := func(when string) {
		t.Helper()
		s.Sees("worker", "dns 127.0.0.1 denied.example.org A -> NXDOMAIN", "connect ssh.example.org:2222 -> ECONNREFUSED", "http https://allowed.example.org/ ca=/ca.pem -> 200")
		for _, verb := range [][]string{{"ps"}, {"up"}, {"exec", "worker", "--", "true"}} {
			if d := s.Expect(0, verb...); strings.Contains(d.Err, "learning") {
				t.Errorf("%v %s:\n%s", verb, when, d.Err)
			}
		}
	}
	held := hold(s, "worker", "ssh.example.org:2222", testnet.SSH, 2222, "20s")
	says(s, s.Expect(0, "firewall", "reload", "--reset"), "learning ended", "1 connection ended")
	if r := held(); r.Seen != "ECONNRESET" {
		t.Errorf("a learned connection after the end: %s (%s)", r.Seen, r.Detail)
	}
	closed("after --reset")

	s.Expect(0, "up", "--learn")
	s.Sees("worker", "tcp ssh.example.org:2222 send=x -> data")
	s.Crash("guard")
	s.Eventually("the guard is back", func() bool {
		return s.Probe("worker", "tcp ssh.example.org:22 send=x limit=2s")[0].Seen == "data"
	})
	closed("after a crash of the guard")

	s.Expect(0, "up", "--learn", "--for", "3s")
	time.Sleep(4 * time.Second)
	closed("after its time")
}

func TestLearnWithSecrets(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := by(scenario.New(t, "secrets", "a workshop whose learning workers have secrets learns only when that is said"))
	s.Env = append(s.Env, "E2E_TOKEN=e2e-value")
	says(s, s.Expect(4, "up", "--learn"), "--learn is refused", "holder (secrets token, key)", "--with-secrets")
	if l := left(s); l != nil {
		t.Errorf("it left %v", l)
	}
	says(s, s.Expect(0, "up", "--learn", "--with-secrets", "--for", "1m"), "learning until ")
}

// A line with the address of this machine opens it on Docker, where the guard has a
// network of its own; with namespaces that address is the guard's too, and stays
// closed. The reason says which (B26).
func TestHostByItsAddress(t *testing.T) {
	s := scenario.New(t, "restricted", "a line opens an address of this machine on Docker, and none on the namespace engine")
	s.Up()
	host, came := scenario.Listen(t, s.HostAddress())
	s.Expect(0, "firewall", "allow", host)
	sees, want, why := "tcp "+host+" -> data", 1, ""
	if !scenario.DockerAPI() {
		sees, want, why = "tcp "+host+" -> "+cutOff, 0, "an address of the machine or container that the guard runs in; nothing opens it"
	}
	s.Sees("worker", sees)
	if n := came(); n != want {
		t.Errorf("%d connections reached the machine, want %d", n, want)
	}
	if d := s.Run("firewall", "log", "--denied"); why != "" && !strings.Contains(strings.Join(strings.Fields(d.Out), " "), why) {
		t.Errorf("the log doesn't say %q:\n%s", why, d.Out)
	}
}
