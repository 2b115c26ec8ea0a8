package initimage_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/initimage"
)

// B5: the program has its setting of GODEBUG. The go command has one of its own, which
// would win, where go.mod names an older Go than the one that builds.
func TestGodebug(t *testing.T) {
	path := filepath.Join(t.TempDir(), "workshop-init")
	if err := testutil.Init(path); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(initimage.Godebug)) {
		t.Errorf("%s is not in the program", initimage.Godebug)
	}
}
