//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestB46_ArchivesAreReadOnce: an archive that is exchanged all the time is refused or runs
// as it was locked, and nothing that came after the comparison does.
func TestB46_ArchivesAreReadOnce(t *testing.T) {
	scenario.OnlyNamespace(t, "the docker engine reads no images from files")
	s := scenario.At(t, "of an image in files what was compared with the lock runs, whatever is written there meanwhile", lockedFiles("docker-archive:./worker.tar"))
	locked := s.SavedImage("worker:1", layer("etc/version", 0o644, []byte("locked\n")))
	other := s.SavedImage("worker:1", layer("etc/version", 0o644, []byte("other!\n")))
	s.Write("worker.tar", string(locked))
	s.Expect(0, "lock")
	s.Up("--frozen")
	runs := func() string {
		return s.Expect(0, "call", "--no-up", "worker", "read_file", `{"path": "/etc/version"}`).Out
	}
	if got := runs(); !strings.Contains(got, "locked") {
		t.Fatalf("control: %s runs", got)
	}
	s.Write("worker.tar", string(other))
	if d := s.Expect(4, "up"); !strings.Contains(d.Err, "image docker-archive:./worker.tar is sha256:") {
		t.Error(d.Err)
	}
	s.Expect(0, "down")

	name, came, tries := filepath.Join(s.Dir, "worker.tar"), 0, 0
	for ; came < 8 && tries < 60; tries++ {
		s.Run("prune", "--all", "--yes") // else the store has the image
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() { // by renaming, as programs that write images do
			defer close(stopped)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_ = os.WriteFile(name+".new", [][]byte{locked, other}[i%2], 0o644)
				_ = os.Rename(name+".new", name)
				time.Sleep(time.Duration(i%7) * time.Millisecond) // in no step with who reads
			}
		}()
		d := s.Run("up")
		close(stop)
		<-stopped
		if s.Write("worker.tar", string(locked)); d.Code != 0 {
			continue
		}
		came++
		if got := runs(); !strings.Contains(got, "locked") {
			t.Fatalf("%s runs", got)
		}
		s.Expect(0, "down")
	}
	t.Logf("%d of %d came up", came, tries)
}
