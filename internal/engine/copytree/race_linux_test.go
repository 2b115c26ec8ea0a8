package copytree

import (
	"archive/tar"
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

// A worker that writes to the source exchanges what is copied (B9, B60).
func TestCopyOfWhatIsExchanged(t *testing.T) {
	dir := tree(t, "a.txt", "b.txt", "sub/c.txt")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".env"), []byte("PASSWORD"), 0o600), os.Symlink(".env", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for i, swap := range [][2]string{{"a.txt", "link"}, {"b.txt", "fifo"}, {"sub", "fifo"}} {
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
				_ = Write(tar.NewWriter(&b), dir, Options{Exclude: []string{".env"}})
				if strings.Contains(b.String(), "PASSWORD") {
					done <- "what is left out was copied"
					return
				}
			}
			done <- ""
		}()
		select {
		case what := <-done:
			if what != "" {
				t.Errorf("%d: %s", i, what)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%d: it hangs", i)
		}
		close(stop)
		<-stopped
	}
}
