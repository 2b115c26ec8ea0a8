//go:build linux

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Standing is a workshop of testdata that tests share which only look: the first
// brings it up. A test that leaves other containers than it found fails; what a
// worker writes stays, and so do the lines of the guard's log. Where a test fails,
// the next one has a new one.
type Standing struct {
	Dir string
	// Prepare, if there is one, is called before the start.
	Prepare func(*Scenario)
	// Flags of its `up`.
	Flags []string
}

// Look is [New] and [Scenario.Up], where that wasn't done yet.
func (w *Standing) Look(t testing.TB, intent string) *Scenario {
	t.Helper()
	l := TheLab(t)
	l.tell(t, intent)
	t.Cleanup(func() {
		if t.Failed() {
			l.lower(t, w)
		}
	})
	if l.standing[w] == nil {
		l.raise(t, w)
	}
	s := *l.standing[w]
	s.TB, s.ctx = t, t.Context()
	before := s.started()
	t.Cleanup(func() {
		if after := s.started(); after != before {
			t.Errorf("it changed a workshop that others look at, where scenario.New gives it one of its own:\n%s\n%s", before, after)
		}
	})
	return &s
}

// raise brings the workshop up.
func (l *Lab) raise(t testing.TB, w *Standing) {
	t.Helper()
	base, err := os.MkdirTemp("", "workshop-e2e-standing-")
	if err != nil {
		t.Fatal(err)
	}
	s := l.begin(t, filepath.Join(base, "project"))
	l.standing[w] = s
	s.fill(filepath.Join("testdata", w.Dir))
	if w.Prepare != nil {
		w.Prepare(s)
	}
	s.Up(w.Flags...)
}

// lower removes it.
func (l *Lab) lower(t testing.TB, w *Standing) {
	if s := l.standing[w]; s != nil {
		s.TB = t
		s.remove()
		_ = os.RemoveAll(filepath.Dir(s.Dir))
		delete(l.standing, w)
	}
}

// started tells the containers and when each began, for comparing.
func (s *Scenario) started() string {
	s.Helper()
	began := map[string]string{}
	for service, c := range s.Containers() {
		began[service] = c.ID + " " + c.State + " " + c.Started
	}
	return fmt.Sprint(began)
}

// afterwards stands for a test when all have ended.
type afterwards struct{ testing.TB }

func (afterwards) Helper()      {}
func (afterwards) Failed() bool { return false }

func (afterwards) Errorf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "after the tests: "+format+"\n", args...)
}
