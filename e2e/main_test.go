//go:build linux

// Package e2e proves the promises of the boundary on a real engine: see
// package scenario for the frame, and README.md for how to run one by hand.
package e2e

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/workshop"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if scenario.TheKernel() != workshop.KernelHost {
		closedAtOnce = closedAtOnce[:3] // such a kernel answers pings itself
	}
	if root, err := filepath.Abs(".."); err == nil && scenario.TheEngine() != scenario.Docker && !testing.Short() {
		_, _ = installClient(root) // which needs a network that the tests then don't have; TestMCP says what failed
	}
	os.Exit(scenario.Main(m))
}

// oneEngine finds the tests in README.md that don't run on all engines.
var oneEngine = regexp.MustCompile("(?m)^- `(Test\\w+)`")

// TestWhatRunsOnOneEngineIsWrittenDown: a test that runs on one engine alone is a
// decision, and stands in README.md.
func TestWhatRunsOnOneEngineIsWrittenDown(t *testing.T) {
	tests, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	only := regexp.MustCompile(`scenario\.(?:OnlyDocker|OnlyNamespace|OnlyRootless|NotRootless|OnlyPodman|Once)\(`)
	var got []string
	for _, name := range tests {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{$.*?^\}`).FindAllStringSubmatch(string(b), -1) {
			if only.MatchString(f[0]) {
				got = append(got, f[1])
			}
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range oneEngine.FindAllStringSubmatch(string(readme), -1) {
		want = append(want, m[1])
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("not on all engines: %v\nREADME.md has %v", got, want)
	}
}

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
		if d.IsDir() && !regexp.MustCompile(`scenario\.(New\(t, |Standing\{Dir: )"`+d.Name()+`"`).MatchString(all.String()) {
			t.Errorf("testdata/%s belongs to no test", d.Name())
		}
	}
}
