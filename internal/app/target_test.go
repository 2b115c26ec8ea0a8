package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// TestManyKeys: B60: a look at the name takes time in proportion to the file.
func TestManyKeys(t *testing.T) {
	var text strings.Builder
	text.WriteString("workshop:\n  name: hostile\n")
	for i := range 70_000 {
		fmt.Fprintf(&text, "  k%d: x\n", i)
	}
	file := filepath.Join(t.TempDir(), "workshop.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := testutil.Now()
	if name, _ := quickLook(file); name != "hostile" {
		t.Errorf("got the name %q", name)
	}
	if d := testutil.Since(begin); d > 2*time.Second {
		t.Errorf("took %v", d)
	}
}
