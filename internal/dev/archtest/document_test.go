package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestArchitectureDocument: every path that docs/architecture.md names exists, and
// every public and internal package is named there, by itself or by its family
// ("internal/cli/...").
func TestArchitectureDocument(t *testing.T) {
	doc, err := os.ReadFile(root + "/docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	named := pathsOf(t, string(doc))
	for _, p := range named {
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(p, "/..."))); err != nil {
			t.Errorf("docs/architecture.md names %s, which doesn't exist", p)
		}
	}
	for _, p := range packages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		if !ours || p.DepOnly || !slices.Contains(public, name) && !strings.HasPrefix(name, "internal/") {
			continue
		}
		if !slices.ContainsFunc(named, func(n string) bool { return covers(n, name) }) {
			t.Errorf("docs/architecture.md doesn't name %s", name)
		}
	}
}

// pathsOf are the paths of the repository in a document of docs/: targets of links,
// what begins with a directory of the root, and public packages in backticks. A list
// in braces is written out.
func pathsOf(t *testing.T, doc string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			dirs = append(dirs, regexp.QuoteMeta(e.Name()))
		}
	}
	var paths []string
	for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(doc, -1) {
		paths = append(paths, filepath.Join("docs", m[1]))
	}
	for _, m := range regexp.MustCompile("`("+strings.Join(public, "|")+")`").FindAllStringSubmatch(doc, -1) {
		paths = append(paths, m[1])
	}
	own := regexp.MustCompile(`(^|[^\w./-])((?:` + strings.Join(dirs, "|") + `)/[\w./{},-]*)`)
	for _, m := range own.FindAllStringSubmatch(doc, -1) {
		p := m[2]
		if !strings.HasSuffix(p, "/...") {
			p = strings.TrimRight(p, ".,/")
		}
		before, rest, _ := strings.Cut(p, "{")
		list, after, braces := strings.Cut(rest, "}")
		if !braces {
			paths = append(paths, p)
			continue
		}
		for one := range strings.SplitSeq(list, ",") {
			paths = append(paths, before+one+after)
		}
	}
	return paths
}
