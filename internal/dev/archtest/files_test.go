package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readsFiles are the packages that read files of a project, or of a directory that
// a worker writes to.
var readsFiles = []string{"/workshop/...", "/compose/...", "/internal/cli/...", "/internal/app/...", "/internal/facts/...", "/internal/session/...", "/internal/engine/docker/...", "/internal/engine/copytree/..."}

// TestFilesAreBounded: in those packages files are opened by internal/lib/boundedfile
// alone, which neither waits nor reads without end (B60).
func TestFilesAreBounded(t *testing.T) {
	banned := []string{"os.ReadFile", "os.Open", "os.OpenInRoot", "root.Open", "os.O_RDONLY", "syscall.O_RDONLY"}
	exempt := map[string]string{
		"internal/facts/linux.go":           "mountinfo of procfs",
		"internal/engine/docker/info.go":    "a setting of procfs",
		"internal/engine/docker/session.go": "mountinfo of procfs",
	}
	used := map[string]bool{}
	for _, p := range packages(t) {
		if !slices.ContainsFunc(readsFiles, func(s string) bool { return covers(module+s, p.ImportPath) }) || isGenerator(p) {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			file := strings.TrimPrefix(p.ImportPath, module+"/") + "/" + name
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				x, ok := s.X.(*ast.Ident)
				call := s.Sel.Name
				if ok {
					call = x.Name + "." + call
				}
				// A method is one of *os.Root or of an fs.FS.
				if slices.Contains(banned, call) || s.Sel.Name == "ReadFile" && call != "tool.ReadFile" {
					used[file] = true
					if exempt[file] == "" {
						t.Errorf("%s: %s: files are read by internal/lib/boundedfile", fset.Position(s.Pos()), call)
					}
				}
				return true
			})
		}
	}
	for file := range exempt {
		if !used[file] {
			t.Errorf("%s is exempt and reads nothing so", file)
		}
	}
}
