package app

import (
	"strings"
	"testing"
)

// B46: after a merge with conflicts, a source on which both sides agree stays as it was
// reviewed, although there is a newer release; of a lock that can't be read nothing does.
func TestLockAfterAMerge(t *testing.T) {
	s := newShared(t)
	s.release("v1.0.0", "")
	s.lock(LockOptions{})
	good := s.read("workshop.lock")
	s.release("v1.1.0", "")
	line := ""
	for l := range strings.Lines(good) {
		if strings.HasPrefix(l, "  workshop.yaml: sha256:") {
			line = l
		}
	}
	if line == "" {
		t.Fatal(good)
	}
	other := line[:len(line)-2] + "0\n"
	if other == line {
		other = line[:len(line)-2] + "1\n"
	}
	s.write("workshop.lock", strings.Replace(good, line, "<<<<<<< HEAD\n"+line+"=======\n"+other+">>>>>>> other\n", 1))
	s.lock(LockOptions{})
	if got := s.read("workshop.lock"); got != good {
		t.Errorf("it is written as\n%s\nwant\n%s", got, good)
	}
	s.write("workshop.lock", "<<<<<<<\n"+good)
	s.lock(LockOptions{})
	if ref := s.locked().Ref; ref != "refs/tags/v1.1.0" {
		t.Errorf("a lock that can't be read: %s", ref)
	}
}

// What a lock after a merge changes of the branch's own is shown, and a mistake in the
// workshop's file isn't said to be in the lock.
func TestShownAfterAMerge(t *testing.T) {
	s := newShared(t)
	s.release("v1.0.0", "")
	s.lock(LockOptions{})
	ours := s.read("workshop.lock")
	s.release("v1.1.0", "")
	s.lock(LockOptions{Upgrade: true})
	s.write("workshop.lock", "<<<<<<< HEAD\n"+ours+"=======\n"+s.read("workshop.lock")+">>>>>>> other\n")
	s.answer(true, true, true, true)
	r, err := s.env.Lock(t.Context(), LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, d := range r.Differences {
		shown = append(shown, d.String())
	}
	if text := strings.Join(shown, "\n"); r.New || !strings.Contains(text, "ref is refs/tags/v1.1.0, locked as refs/tags/v1.0.0") {
		t.Errorf("new: %v, differences:\n%s", r.New, text)
	}

	s.write("workshop.lock", "<<<<<<< HEAD\n"+ours+"=======\n"+s.read("workshop.lock")+">>>>>>> other\n")
	s.write("workshop.yaml", "<<<<<<< HEAD\n"+s.read("workshop.yaml"))
	_, err = s.env.Lock(t.Context(), LockOptions{})
	if err == nil || !strings.Contains(err.Error(), "workshop.yaml is invalid") {
		t.Errorf("a mistake in the workshop's file: %v", err)
	}
}

// B46: a release whose tag is at another commit by now is said to be one.
func TestMovedTag(t *testing.T) {
	s := newShared(t)
	s.lock(LockOptions{})
	s.release("v1.0.0", "  description: changed\n")
	s.said.Reset()
	s.lock(LockOptions{Upgrade: true})
	if said := s.said.String(); !strings.Contains(said, "the tag v1.0.0 was moved: it was at ") {
		t.Errorf("said: %s", said)
	}
	s.release("v1.1.0", "")
	s.said.Reset()
	s.lock(LockOptions{Upgrade: true})
	if said := s.said.String(); strings.Contains(said, "was moved") {
		t.Errorf("a new release: %s", said)
	}
}
