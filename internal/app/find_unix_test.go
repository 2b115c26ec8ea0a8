//go:build unix

package app

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	a := testEnv(&Env{Dir: below, Lookup: func(name string) (string, bool) { return sudo, sudo != "" }}, io.Discard)
	var f *Failure
	if _, err := a.FindFile(); !errors.As(err, &f) || f.Code != CodeRefused || !strings.Contains(err.Error(), "54321") {
		t.Errorf("got %v, want a refusal", err)
	}
	taken := func(why string) {
		t.Helper()
		if got, err := a.FindFile(); got != file || err != nil {
			t.Errorf("%s: got %s, %v", why, got, err)
		}
	}
	sudo = "54321"
	taken("of who called sudo")
	sudo = ""
	a.Settings.File = file
	taken("named")
	a.Settings.File, a.Dir = "", dir
	taken("of the working directory")
	a.Dir = below
	if err := os.Chown(below, other, other); err != nil {
		t.Fatal(err)
	}
	taken("of the working directory's owner")
}
