//go:build linux

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// standingKey names a workshop that stands: its directory of testdata, and what
// prepared it.
type standingKey struct {
	dir     string
	prepare uintptr
}

// Standing is [New] and [Scenario.Up] for a test that only looks: the workshop is
// brought up by the first that asks for it and stands for all of them. A test that
// leaves other containers than it found fails; what a worker writes stays, and so
// do the lines of the guard's log. Where a test fails, the next one has a new one.
//
// What prepare does comes before the start; nil: nothing. Tests share what one
// function prepares.
func Standing(t testing.TB, dir, intent string, prepare func(*Scenario)) *Scenario {
	t.Helper()
	l := TheLab(t)
	key := standingKey{dir: dir}
	if prepare != nil {
		key.prepare = reflect.ValueOf(prepare).Pointer()
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.lower(t, key)
		}
	})
	if l.standing[key] == nil {
		l.raise(t, key, intent, prepare)
	} else {
		t.Log("intent: " + intent)
		l.Internet.Reset()
	}
	s := *l.standing[key]
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
func (l *Lab) raise(t testing.TB, key standingKey, intent string, prepare func(*Scenario)) {
	t.Helper()
	base, err := os.MkdirTemp("", "workshop-e2e-standing-")
	if err != nil {
		t.Fatal(err)
	}
	s := l.begin(t, intent, filepath.Join(base, "project"))
	l.standing[key] = s
	s.fill(filepath.Join("testdata", key.dir))
	if prepare != nil {
		prepare(s)
	}
	s.Up()
}

// lower removes it.
func (l *Lab) lower(t testing.TB, key standingKey) {
	if s := l.standing[key]; s != nil {
		s.TB = t
		s.remove()
		_ = os.RemoveAll(filepath.Dir(s.Dir))
		delete(l.standing, key)
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
