//go:build linux

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
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

// TestVerify: five workers of a workshop as it should be. Every promise of which the table
// says that it can be tested without disruption is held, and no packet leaves the guard.
func TestVerify(t *testing.T) {
	s := scenario.New(t, "verify", "verify says of every promise whether it is held, in less than five seconds, and sends nothing out")
	s.Write("out/.git/hooks/sample", "")
	s.Env = append(s.Env, "VERIFY_TOKEN=0123456789abcdef")
	s.Up()
	s.Internet.Reset()
	before := s.Containers()
	d := s.Run("verify", "--format", "json")
	if d.Code != 0 {
		t.Errorf("exit code %d\n%s", d.Code, d.Err)
	}
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
		}
	}
	for _, p := range promise.All() {
		if !about[p.ID] {
			t.Errorf("nothing is said of %s", p.ID)
		}
	}
}
