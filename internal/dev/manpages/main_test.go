package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The synopsis of a page is the line of usage that --help has.
func TestSynopsis(t *testing.T) {
	dir := t.TempDir()
	if err := write(dir, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"workshop.1":     "workshop COMMAND [FLAGS]",
		"workshop-mcp.1": "workshop mcp COMMAND [FLAGS]",
		"workshop-ls.1":  "workshop ls [FLAGS]",
		"workshop-run.1": "workshop run [FLAGS] [WORKER] [-- COMMAND [ARG...]]",
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil || !strings.Contains(string(text), ".SH SYNOPSIS\n\\fB"+want+"\\fP\n") {
			t.Errorf("%s: no %q (%v)", page, want, err)
		}
	}
}
