//go:build unix

package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
)

// TestCheckOfStrangeFiles: what Compose would read beside the generated files is
// named by compile --check, and none of their text drives the terminal.
func TestCheckOfStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGenerated(dir, ".workshop/x", []compose.File{{Path: "compose.yaml", Data: []byte("services: {}\n")}})
	if _, err := g.write(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := newProgram(&System{Env: &app.Env{Dir: dir}, Out: &out, Err: &out})
	cmd := &cobra.Command{Use: "compile"}
	if err := a.checkGenerated(cmd, g); err != nil {
		t.Fatal(err)
	}
	for _, name := range byItself {
		file := g.path(name)
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		if err := a.checkGenerated(cmd, g); err == nil || !strings.Contains(out.String(), name) {
			t.Errorf("%s: got %v, %q", name, err, out.String())
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(g.path("compose.yaml"), []byte("services: {}\n\x1b]0;x\a\r::error::x\nlast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := a.checkGenerated(cmd, g); err == nil || strings.ContainsAny(out.String(), "\x1b\a\r") || !strings.Contains(out.String(), `\x1b]0;x\x07\x0d::error::x`) || !strings.Contains(out.String(), "\n-last\n") {
		t.Errorf("got %v, %q", err, out.String())
	}
}
