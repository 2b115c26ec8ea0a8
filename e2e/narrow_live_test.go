//go:build linux

package e2e

import (
	"regexp"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// shut reports what a worker reaches of a name that is denied.
func shut(s *scenario.Scenario, worker string) {
	s.Helper()
	s.Sees(worker, "lookup allowed.example.org -> NXDOMAIN", "http http://allowed.example.org/ connect=198.51.100.10:80 -> 403", "lookup ssh.example.org -> NXDOMAIN")
}

func TestB27_DenyOutlivesRooms(t *testing.T) {
	s := by(scenario.New(t, "rooms", "a live deny and its end outlive a restart, and rooms that are made anew, merged and split: it follows its worker; what ends is said"))
	s.Up()
	says(s, s.Expect(0, "firewall", "deny", "ssh.example.org", "--for", "8h"), "until ", "(8h)")
	s.Expect(0, "firewall", "deny", "allowed.example.org", "--worker", "third")
	s.Expect(0, "firewall", "allow", "new.example.org:2222", "denied.example.org")
	until := func() string {
		s.Helper()
		d := s.Expect(0, "firewall", "show")
		return regexp.MustCompile(`until [^\n]* \(`).FindString(d.Out)
	}
	end := until()
	open := func(when, worker string) {
		s.Helper()
		if r := s.Probe(worker, "http https://allowed.example.org/ ca=/ca.pem")[0]; r.Seen != "200" {
			s.Errorf("%s: %s sees %s (%s)", when, worker, r.Seen, r.Detail)
		}
	}
	open("at first", "first")
	shut(s, "third")

	ends := "2 live allows end with the guard: "
	says(s, s.Expect(0, "restart"), ends)
	shut(s, "third")
	s.Sees("first", "lookup ssh.example.org -> NXDOMAIN", "lookup denied.example.org -> NXDOMAIN")
	open("restarted", "first")
	if got := until(); got != end || end == "" {
		s.Errorf("restarted, it ends %q, want %q", got, end)
	}

	// Two rooms become one.
	own := "    - name: third\n      container: {network: {allow: [allowed.example.org], room: own}}\n"
	edit(s, own, "    - third\n")
	s.Expect(0, "firewall", "allow", "denied.example.org", "--worker", "first")
	ends = "1 live allow ends with the guard: denied.example.org"
	says(s, s.Expect(0, "up", "--dry-run"), ends)
	open("after a dry run", "first")
	says(s, s.Up(), ends)
	for _, worker := range []string{"first", "third"} {
		shut(s, worker)
	}

	// One becomes three, the first of which keeps its name.
	edit(s, "    - third\n", own)
	edit(s, "    - first\n", "    - name: first\n      container: {network: {allow: [allowed.example.org, ssh.example.org:22], room: own}}\n")
	s.Up()
	for _, worker := range []string{"first", "second", "third"} {
		shut(s, worker)
	}
	if got := until(); got != end {
		s.Errorf("after all that, it ends %q, want %q", got, end)
	}

	// A worker that has no network in between.
	edit(s, "{allow: [allowed.example.org], room: own}", "{mode: none}")
	s.Up()
	s.Expect(0, "restart")
	edit(s, "network: {mode: none}", "network: {allow: [allowed.example.org], room: own}")
	s.Up()
	shut(s, "third")
	s.Expect(0, "firewall", "allow", "allowed.example.org", "--worker", "third")
	s.Expect(0, "restart")
	open("allowed again", "third")

	// Without any room nothing is left to be denied.
	s.Write("workshop.yaml", regexp.MustCompile(`network: \{[^}]*\}`).ReplaceAllString(s.Read("workshop.yaml"), "network: {mode: none}"))
	dropped := "live denies are dropped, because no worker has a network any more: "
	says(s, s.Expect(0, "up", "--dry-run"), dropped)
	says(s, s.Up(), dropped)
}
