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

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// A worker that writes to the source exchanges what is copied (B9, B60).
func TestCopyOfWhatIsExchanged(t *testing.T) {
	dir := testutil.Tree(t, "a.txt", "b.txt", "sub/c.txt")
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".env"), []byte("PASSWORD"), 0o600), os.Symlink(".env", filepath.Join(dir, "link")), syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, pair := range [][2]string{{"a.txt", "link"}, {"b.txt", "fifo"}, {"sub", "fifo"}} {
		testutil.WhileExchanged(t, func() error {
			var b bytes.Buffer
			_ = Write(tar.NewWriter(&b), dir, Options{Exclude: []string{".env"}})
			if strings.Contains(b.String(), "PASSWORD") {
				return errors.New("what is left out was copied")
			}
			return nil
		}, [2]string{at(pair[0]), at(pair[1])})
	}
}
