//go:build linux

package files

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/tool"
)

// What a repository holds must not keep a tool beyond the call's time.
func TestPatternsDontOutliveTheCall(t *testing.T) {
	dir := t.TempDir()
	names := map[string]string{".gitignore": strings.Repeat("*a*b\n", maxRules/5-1)}
	for i := range 3000 {
		names[strconv.Itoa(i)+strings.Repeat("a", 200)] = ""
	}
	tree(t, dir, names)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	begun := testutil.Now()
	if _, err := List(ctx, tool.ListFilesArgs{Path: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended after %v: %v", testutil.Since(begun), err)
	}
	if d := testutil.Since(begun); d > 10*time.Second {
		t.Errorf("it took %v", d)
	}
}

// The files of patterns are bounded together: each directory may have one.
func TestRulesAreBoundedTogether(t *testing.T) {
	dir, rules := t.TempDir(), strings.Repeat("#\n", maxRules/5)
	tree(t, dir, map[string]string{
		".gitignore": "*.log\n" + rules, "d/.gitignore": "*.tmp\n" + rules, "d/d/.gitignore": "*.txt\n" + rules,
		"d/d/a.log": "", "d/d/a.tmp": "", "d/d/a.txt": "",
	})
	r, err := List(t.Context(), tool.ListFilesArgs{Path: dir, Glob: "**/a.*"})
	if err != nil || len(r.Entries) != 1 || r.Entries[0].Path != dir+"/d/d/a.txt" {
		t.Errorf("%+v, %v", r, err)
	}
	if want := "d/d/.gitignore"; !strings.Contains(r.Note, want) {
		t.Errorf("the note is %q, without %s", r.Note, want)
	}
}

// An expression that is tried on each byte at thousands of places can't be ended
// before a block's end.
func TestLargeExpressionsAreRefused(t *testing.T) {
	for _, p := range []string{strings.Repeat("a{0,1000}", 800) + "b", strings.Repeat(`\pL{0,1000}`, 100) + "1"} {
		if _, err := newMatcher(tool.SearchFilesArgs{Pattern: p}); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%.20s: %v", p, err)
		}
	}
	for _, a := range []tool.SearchFilesArgs{{Pattern: `a{0,1000}b[\s\S]{0,500}`}, {Pattern: strings.Repeat("x", maxPattern), Literal: true}} {
		if _, err := newMatcher(a); err != nil {
			t.Errorf("%.20s: %v", a.Pattern, err)
		}
	}
}
