package safetar

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
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
	for _, pair := range [][2]string{{"from/sub", "from/link"}, {"from/a", "from/file"}, {"from/a", "fifo"}, {"from/sub", "fifo"}} {
		testutil.WhileExchanged(t, func() error {
			var b bytes.Buffer
			_ = Pack(&b, open(t, at("from")), ".", "n", 1000, 1000)
			if strings.Contains(b.String(), "PRIVATE") {
				return errors.New("what lies outside was copied")
			}
			return nil
		}, [2]string{at(pair[0]), at(pair[1])})
	}
}

// So is what is copied itself, with a link to what is beside it.
func TestPackOfASourceThatIsExchanged(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(at("from"), 0o755), os.Mkdir(at("keys"), 0o755), os.WriteFile(at("from/id"), []byte("public"), 0o600),
		os.WriteFile(at("keys/id"), []byte("PRIVATE"), 0o600), os.Symlink("keys", at("link"))); err != nil {
		t.Fatal(err)
	}
	root := open(t, dir)
	testutil.WhileExchanged(t, func() error {
		var b bytes.Buffer
		_ = Pack(&b, root, "from", "n", 1000, 1000)
		if strings.Contains(b.String(), "PRIVATE") {
			return errors.New("what lies beside it was copied")
		}
		return nil
	}, [2]string{at("from"), at("link")})
}
