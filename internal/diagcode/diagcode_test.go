package diagcode

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// TestEveryCode: each code that the source has is explained, and no other.
func TestEveryCode(t *testing.T) {
	have := map[string]bool{}
	for _, e := range All() {
		if have[e.Code] {
			t.Errorf("%s is explained twice", e.Code)
		}
		have[e.Code] = true
		if e.Meaning == "" || len(e.Write) == 0 {
			t.Errorf("%s: the meaning or the lines to write are missing", e.Code)
		}
	}
	codes := sourceCodes(t)
	for code, at := range codes {
		if !have[code] {
			t.Errorf("%s: the code %s has no entry in internal/diagcode/*.md", at, code)
		}
	}
	for code := range have {
		if codes[code] == "" {
			t.Errorf("%s is explained, but no diagnostic has it", code)
		}
	}
	if len(codes) < 100 {
		t.Errorf("only %d codes were found in the source", len(codes))
	}
}

var kebab = regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)

// sourceCodes are the codes of diagnostics in the source, each with a place: what
// is given as Code, and to parameters called code.
func sourceCodes(t *testing.T) map[string]string {
	codes := map[string]string{}
	for _, dir := range []string{"../../workshop", "../../compose", "../facts", "../importer", "../app", "../lock", "../egressacl"} {
		files := token.NewFileSet()
		var parsed []*ast.File
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, 0)
			parsed = append(parsed, f)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		take := func(e ast.Expr) {
			if sum, ok := e.(*ast.BinaryExpr); ok { // "duplicate-" and what the list is of
				if l, ok := sum.X.(*ast.BasicLit); ok && l.Value == `"duplicate-"` {
					for _, of := range []string{"cache", "import", "mount", "port", "secret"} {
						codes["duplicate-"+of] = files.Position(l.Pos()).String()
					}
				}
				return
			}
			ast.Inspect(e, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil && kebab.MatchString(text) {
						codes[text] = files.Position(l.Pos()).String()
					}
				}
				return true
			})
		}
		parameters := map[string]int{} // by name of the function: which parameter is the code
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				switch d := n.(type) {
				case *ast.FuncDecl:
					addCodeParameter(parameters, d.Name.Name, d.Type)
				case *ast.AssignStmt:
					if l, ok := d.Rhs[0].(*ast.FuncLit); ok {
						if name, ok := d.Lhs[0].(*ast.Ident); ok {
							addCodeParameter(parameters, name.Name, l.Type)
						}
					}
				}
				return true
			})
		}
		for _, f := range parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.KeyValueExpr:
					if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Code" {
						take(n.Value)
					}
				case *ast.AssignStmt:
					for i, l := range n.Lhs {
						name := ""
						switch l := l.(type) {
						case *ast.SelectorExpr:
							name = l.Sel.Name
						case *ast.Ident:
							name = l.Name
						}
						if (name == "Code" || name == "code") && i < len(n.Rhs) {
							if l, ok := n.Rhs[i].(*ast.BasicLit); ok {
								take(l)
							}
						}
					}
				case *ast.ValueSpec:
					for i, name := range n.Names {
						if strings.HasPrefix(strings.ToLower(name.Name), "code") && i < len(n.Values) {
							take(n.Values[i])
						}
					}
				case *ast.CallExpr:
					name := ""
					switch f := n.Fun.(type) {
					case *ast.SelectorExpr:
						name = f.Sel.Name
					case *ast.Ident:
						name = f.Name
					}
					// What else is called so has diagnostics for a second argument.
					if i, ok := parameters[name]; ok && i < len(n.Args) {
						if l, ok := n.Args[i].(*ast.BasicLit); ok && !(len(n.Args) == 2 && name == "refuse") {
							take(l)
						}
					}
				}
				return true
			})
		}
	}
	return codes
}

func addCodeParameter(parameters map[string]int, name string, f *ast.FuncType) {
	i := 0
	for _, field := range f.Params.List {
		for _, p := range field.Names {
			if p.Name == "code" {
				if t, ok := field.Type.(*ast.Ident); ok && t.Name == "string" {
					parameters[name] = i
				}
			}
			i++
		}
	}
}

// notByLoading are codes whose example can't be a file of text.
var notByLoading = []string{"no-file"}

// TestExamples: the example of a code that is found in files has that diagnostic,
// what is to be written instead has not, and all other examples are valid files.
func TestExamples(t *testing.T) {
	codes := sourceCodes(t)
	for _, e := range All() {
		t.Run(e.Code, func(t *testing.T) {
			files, some := fstest.MapFS{}, false
			for _, b := range e.Example {
				if b.File != "" {
					files[b.File] = &fstest.MapFile{Data: []byte(b.Text)}
					some = true
				}
			}
			byLoading := strings.HasPrefix(codes[e.Code], "../../workshop/") && !slices.Contains(notByLoading, e.Code)
			if some && byLoading && !slices.Contains(load(files), e.Code) {
				t.Errorf("the example has no %s but %v", e.Code, load(files))
			}
			if found := load(files); some && !byLoading && len(found) > 0 && !slices.Equal(found, []string{e.Code}) {
				t.Errorf("the example of a code of the machine has other problems: %v", found)
			}
			for _, b := range e.Write {
				if !strings.HasPrefix(b.Text, "workshop:") {
					continue
				}
				fixed := fstest.MapFS{"workshop.yaml": &fstest.MapFile{Data: []byte(b.Text)}}
				for name, f := range files {
					if name != "workshop.yaml" && name != ".env" {
						fixed[name] = f
					}
				}
				if found := load(fixed); slices.Contains(found, e.Code) {
					t.Errorf("what is to be written has it still: %v", found)
				}
			}
		})
	}
}

// load returns the codes that a project has, after what the examples leave out
// was added to it.
func load(files fstest.MapFS) []string {
	all := maps.Clone(files)
	if f := all["workshop.yaml"]; f == nil || strings.HasPrefix(string(f.Data), "workshop:") {
		text := "workshop:\n"
		if f != nil {
			text = string(f.Data)
		}
		all["workshop.yaml"] = &fstest.MapFile{Data: []byte(complete(text))}
	}
	for _, name := range []string{"demo", "second", "closed", "watchman", "reviewer"} {
		file := "workers/" + name + ".md"
		given := name == "reviewer" // who is missing in an example
		for other := range files {
			given = given || strings.HasSuffix(other, "/"+name+"/SKILL.md") || path.Base(other) == name+".md"
		}
		if !given {
			all[file] = &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: Reads\nallowed-tools: Read\n---\nRead.\n")}
		}
	}
	_, list := workshop.Load(context.Background(), all, "workshop.yaml", workshop.Options{})
	return codesOf(list)
}

func codesOf(list diag.List) (codes []string) {
	for _, d := range list {
		codes = append(codes, d.Code)
	}
	return codes
}

// complete adds the keys that every workshop needs.
func complete(text string) string {
	has := func(key string) bool { return strings.Contains("\n"+text, "\n"+key) }
	if !has("  name:") {
		text = strings.Replace(text, "workshop:\n", "workshop:\n  name: demo\n", 1)
	}
	switch {
	case !has("  container:") && !has("  needs:"):
		text += "  container: {image: worker:1}\n"
	case !has("    image:") && !has("    build:") && !has("\timage:") && has("  container:\n"):
		text = strings.Replace(text, "  container:\n", "  container:\n    image: worker:1\n", 1)
	}
	if !has("  workers:") {
		text += "  workers: [demo]\n"
	}
	return text
}

// TestDocuments: a file has nothing that isn't read.
func TestDocuments(t *testing.T) {
	names, err := filepath.Glob("*.md")
	if err != nil || len(names) == 0 {
		t.Fatal("no files: ", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			parts := strings.Split(section, "```")
			if len(parts)%2 == 0 {
				t.Errorf("%s: a block of %q does not end", name, parts[0])
			}
			for i := 2; i < len(parts); i += 2 {
				if strings.TrimSpace(parts[i]) != "" {
					t.Errorf("%s: text behind a block is not read: %q", name, parts[i])
				}
			}
		}
	}
}
