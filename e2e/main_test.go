//go:build linux

// Package e2e proves the promises of the boundary on a real engine: see
// package scenario for the frame, and README.md for how to run one by hand.
package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

func TestMain(m *testing.M) { os.Exit(scenario.Main(m)) }

// TestEveryTestdataDirectoryIsUsed: one that no test names proves nothing.
func TestEveryTestdataDirectoryIsUsed(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range tests {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	dirs, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if d.IsDir() && !strings.Contains(all.String(), `scenario.New(t, "`+d.Name()+`"`) {
			t.Errorf("testdata/%s belongs to no test", d.Name())
		}
	}
}
