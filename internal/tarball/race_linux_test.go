package tarball

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What one worker may write to is copied to another one, and exchanged meanwhile.
func TestPackOfWhatIsExchanged(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(at("from/sub"), 0o755), os.Mkdir(at("keys"), 0o755), os.WriteFile(at("from/sub/id"), []byte("public"), 0o600),
		os.WriteFile(at("from/a"), []byte("public"), 0o600), os.WriteFile(at("keys/id"), []byte("PRIVATE"), 0o600), os.Symlink("../keys", at("from/link")),
		os.Symlink("../keys/id", at("from/file")), syscall.Mkfifo(at("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, swap := range [][2]string{{"from/sub", "from/link"}, {"from/a", "from/file"}, {"from/a", "fifo"}, {"from/sub", "fifo"}} {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, at(swap[0]), unix.AT_FDCWD, at(swap[1]), unix.RENAME_EXCHANGE)
				}
			}
		}()
		done := make(chan string, 1)
		go func() {
			for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
				var b bytes.Buffer
				_ = Pack(&b, at("from"), "n", 1000, 1000)
				if strings.Contains(b.String(), "PRIVATE") {
					done <- "what lies outside was copied"
					return
				}
			}
			done <- ""
		}()
		select {
		case what := <-done:
			if what != "" {
				t.Errorf("%q: %s", swap, what)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%q: it hangs", swap)
		}
		close(stop)
		<-stopped
	}
}
