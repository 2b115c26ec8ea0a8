package archtest

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	Imports    []string
	Deps       []string
	Standard   bool
	DepOnly    bool
}

const root = "../../.."

// goList reads all packages of the module for one operating system, with what
// they import.
var goList = sync.OnceValues(func() ([]pkg, error) {
	return listed[pkg]([]string{"GOOS=linux"}, "-e", "-json=ImportPath,Dir,GoFiles,Imports,Deps,Standard,DepOnly", "./...")
})

// listed is what `go list -json` prints, in the repository's root and with more in
// its environment.
func listed[P any](env []string, args ...string) (all []P, err error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p P
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := goList()
	if err != nil || len(all) == 0 {
		t.Fatalf("go list: %d packages, %v", len(all), err)
	}
	return all
}

// covers reports whether the pattern names the path.
func covers(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return pattern == path
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"net", "net", true}, {"net", "net/http", false}, {"a/b/...", "a/b", true}, {"a/b/...", "a/b/c", true}, {"a/b/...", "a/bc", false},
	} {
		if got := covers(c.pattern, c.path); got != c.want {
			t.Errorf("covers(%q, %q) = %v", c.pattern, c.path, got)
		}
	}
}

func TestImports(t *testing.T) {
	all := packages(t)
	for _, r := range rules {
		found := false
		for _, p := range all {
			if !covers(r.from, p.ImportPath) {
				continue
			}
			found = true
			check := func(imports []string, bans []ban, how string) {
				for _, i := range imports {
					if covers(r.from, i) || i == r.but {
						continue // its own, or allowed
					}
					for _, b := range bans {
						if covers(b.path, i) {
							t.Errorf("%s %s %s: %s", p.ImportPath, how, i, b.why)
						}
					}
				}
			}
			check(p.Imports, r.bans, "imports")
			check(p.Deps, r.deeps, "links")
		}
		if !found {
			t.Errorf("no package %s: the rule guards nothing", r.from)
		}
	}
}

func TestExclusiveImports(t *testing.T) {
	for _, p := range packages(t) {
		for _, e := range exclusive {
			allowed := slices.ContainsFunc(e.allowed, func(a string) bool { return covers(module+"/"+a+"/...", p.ImportPath) })
			for _, i := range p.Imports {
				if !allowed && covers(e.path, i) {
					t.Errorf("%s imports %s: %s", p.ImportPath, i, e.why)
				}
			}
		}
	}
}

// TestStart: nothing is compiled before main, for that costs every start of a
// host program; sync.OnceValue does it when it is first needed.
func TestStart(t *testing.T) {
	for _, p := range packages(t) {
		if covers(module+"/internal/dev/testnet/...", p.ImportPath) || covers(module+"/e2e/...", p.ImportPath) {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.VAR {
					continue
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if _, ok := n.(*ast.FuncLit); ok {
						return false // runs later
					}
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && x.Name == "regexp" && s.Sel.Name == "MustCompile" {
							t.Errorf("%s: compiled at every start: use sync.OnceValue", fset.Position(s.Pos()))
						}
					}
					return true
				})
			}
		}
	}
}

// TestPureCalls: what an import ban can't say, because the package is fine and
// one function of it isn't.
func TestPureCalls(t *testing.T) {
	banned := map[string]string{
		"time.Now": "the clock is not an input", "time.Since": "the clock is not an input", "time.Sleep": "nothing to wait for",
		"os.Getenv": "the environment comes in as a function", "os.LookupEnv": "the environment comes in as a function", "os.Environ": "the environment comes in as a function",
		"os.ExpandEnv": "the environment comes in as a function",
		"os.Open":      "files come in as fs.FS", "os.ReadFile": "files come in as fs.FS", "os.WriteFile": "pure packages write nothing", "os.Create": "pure packages write nothing",
		"os.Stat": "files come in as fs.FS", "os.Lstat": "files come in as fs.FS", "os.ReadDir": "files come in as fs.FS", "os.DirFS": "files come in as fs.FS",
		"os.Getwd": "paths are relative to the fs.FS", "os.Getuid": "who the caller is is a fact", "os.UserHomeDir": "the home directory comes in as an option", "os.Exit": "only main ends the process",
		"rand.Int": "same input, same bytes", "rand.IntN": "same input, same bytes", "rand.Read": "same input, same bytes",
	}
	pure := []string{"/workshop/...", "/firewall/...", "/compose/...", "/schemas/...", "/diag/..."}
	for _, p := range packages(t) {
		if !slices.ContainsFunc(pure, func(s string) bool { return covers(module+s, p.ImportPath) }) || isGenerator(p) {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					if x, ok := s.X.(*ast.Ident); ok && x.Obj == nil {
						if why, bad := banned[x.Name+"."+s.Sel.Name]; bad {
							t.Errorf("%s: %s.%s: %s", fset.Position(s.Pos()), x.Name, s.Sel.Name, why)
						}
					}
				}
				return true
			})
		}
	}
}

// isGenerator: a program below a pure package that `go generate` runs.
func isGenerator(p pkg) bool {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, p.GoFiles[0]), nil, parser.PackageClauseOnly)
	return err == nil && f.Name.Name == "main"
}

// goFiles are all Go files of the repository, relative to its root.
func goFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files[filepath.ToSlash(rel)] = b
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFileSize(t *testing.T) {
	files := goFiles(t)
	for name, b := range files {
		lines := bytes.Count(b, []byte("\n"))
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if lines > maxLines && longFiles[name] == "" {
			t.Errorf("%s has %d lines: why is it one subject? Split it, or list it in longFiles with the reason", name, lines)
		}
		if dir, base := filepath.Split(name); base == "main.go" && (dir == "cmd/workshop/" || dir == "cmd/llmdo/") && lines > entryLines {
			t.Errorf("%s has %d lines: it only hands over to internal/cli", name, lines)
		}
	}
	for name := range longFiles {
		if b, ok := files[name]; !ok || bytes.Count(b, []byte("\n")) <= maxLines {
			t.Errorf("%s is listed as long and isn't", name)
		}
	}
}

// TestVocabulary looks at the names that we give, not at text about others.
func TestVocabulary(t *testing.T) {
	for name, b := range goFiles(t) {
		f, err := parser.ParseFile(token.NewFileSet(), name, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "internal/dev/archtest/") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			var id *ast.Ident
			switch n := n.(type) {
			case *ast.FuncDecl:
				id = n.Name
			case *ast.TypeSpec:
				id = n.Name
			}
			if id != nil {
				for _, w := range otherWords {
					if strings.Contains(strings.ToLower(id.Name), w) {
						t.Errorf("%s: %s: we don't say %q", name, id.Name, w)
					}
				}
			}
			return true
		})
	}
}
