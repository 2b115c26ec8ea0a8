package namespace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// What isn't as `up` or `down` leave it is found, and nothing is changed by looking.
func TestRealStaleProjects(t *testing.T) {
	f := newFixture(t, nil, "w")
	f.up(t)
	look := func(says string, broken bool) {
		t.Helper()
		var got []Stale
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); { // a stopped process may still respond
			var err error
			if got, err = StaleProjects(t.Context(), f.o.StateDir); err != nil {
				t.Fatal(err)
			}
			if says == "" && len(got) == 0 || says != "" && len(got) == 1 && strings.Contains(got[0].What, says) && got[0].Broken == broken {
				return
			}
		}
		t.Errorf("got %+v, want %q", got, says)
	}
	look("", false)
	pidfd, err := holder(f.e.dir(f.name))
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	signal := func(s unix.Signal) {
		t.Helper()
		if err := unix.PidfdSendSignal(pidfd, s, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	signal(unix.SIGSTOP)
	look("its supervisor doesn't respond", true)
	signal(unix.SIGCONT)
	look("", false)
	signal(unix.SIGKILL)
	if err := waitGone(pidfd); err != nil {
		t.Fatal(err)
	}
	look("its supervisor was killed, or the machine restarted", false)
	f.e = f.another(t)
	f.up(t)
	look("", false)
	f.down(t)
	look("", false)

	old := filepath.Join(f.o.StateDir, oldPrefix+"x")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	look(old, false)
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	spoiled := filepath.Join(f.o.StateDir, "spoiled")
	if err := os.Mkdir(spoiled, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(spoiled, api.StateName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	look("its state can't be read", true)
	if err := os.RemoveAll(spoiled); err != nil {
		t.Fatal(err)
	}
	if got, err := StaleProjects(t.Context(), filepath.Join(f.o.StateDir, "none")); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
