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
