//go:build unix

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
)

// TestForeignParentFile: a workshop.yaml that another user put into a directory
// above, such as /tmp, isn't taken for what lies below.
func TestForeignParentFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("gives a file to another user: needs root")
	}
	dir := t.TempDir()
	file, below := filepath.Join(dir, "workshop.yaml"), filepath.Join(dir, "mine")
	const other = 54321
	if err := errors.Join(os.WriteFile(file, nil, 0o644), os.Mkdir(below, 0o755), os.Chown(file, other, other)); err != nil {
		t.Fatal(err)
	}
	sudo := ""
	a := &program{System: &System{Dir: below, Lookup: func(name string) (string, bool) { return sudo, sudo != "" }}}
	var f *app.Failure
	if _, err := a.findFile(); !errors.As(err, &f) || f.Code != app.CodeRefused || !strings.Contains(err.Error(), "54321") {
		t.Errorf("got %v, want a refusal", err)
	}
	taken := func(why string) {
		t.Helper()
		if got, err := a.findFile(); got != file || err != nil {
			t.Errorf("%s: got %s, %v", why, got, err)
		}
	}
	sudo = "54321"
	taken("of who called sudo")
	sudo = ""
	a.set.file = file
	taken("named")
	a.set.file, a.Dir = "", dir
	taken("of the working directory")
	a.Dir = below
	if err := os.Chown(below, other, other); err != nil {
		t.Fatal(err)
	}
	taken("of the working directory's owner")
}

// TestCheckOfStrangeFiles: what Compose would read beside the generated files is
// named by compile --check, and none of their text drives the terminal.
func TestCheckOfStrangeFiles(t *testing.T) {
	dir := t.TempDir()
	g := newGenerated(dir, ".workshop/x", []compose.File{{Path: "compose.yaml", Data: []byte("services: {}\n")}})
	if _, err := g.write(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &program{System: &System{Dir: dir, Out: &out, Err: &out}}
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
