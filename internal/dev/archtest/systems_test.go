package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// TestOtherSystems: what isn't built here is right in its types for the systems
// and architectures that have it. `make cross` builds it too, which takes twenty
// times as long.
func TestOtherSystems(t *testing.T) {
	for _, x := range []struct {
		system, arch, tags string
		programs           []string
	}{
		{"darwin", "arm64", "validator_novalidatefn,nethttpomithttp2", []string{"./cmd/workshop", "./cmd/llmdo"}},
		{"windows", "amd64", "validator_novalidatefn,nethttpomithttp2", []string{"./cmd/workshop", "./cmd/llmdo"}},
		{"linux", "arm64", "nethttpomithttp2", []string{"./cmd/workshop-init"}},
	} {
		t.Run(x.system+" "+x.arch, func(t *testing.T) {
			args := append([]string{"-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "-tags", x.tags}, x.programs...)
			all, err := listed[typedPkg]([]string{"CGO_ENABLED=0", "GOOS=" + x.system, "GOARCH=" + x.arch}, args...)
			if err != nil {
				t.Fatal(err)
			}
			c := checker{done: map[string]*types.Package{"unsafe": types.Unsafe}, sizes: types.SizesFor("gc", x.arch)}
			for _, p := range all { // what is imported comes first
				if p.ImportPath != "unsafe" {
					c.check(t, p)
				}
			}
			if len(c.done) < 100 {
				t.Errorf("%d packages", len(c.done))
			}
		})
	}
}

// typedPkg is what `go list -json` says that types depend on.
type typedPkg struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	Module     *struct {
		GoVersion string
		Main      bool
	}
}

type checker struct {
	done  map[string]*types.Package
	sizes types.Sizes
}

// check reads one package, of others than ours without what is in functions.
func (c *checker) check(t *testing.T, p typedPkg) {
	ours := p.Module != nil && p.Module.Main
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{
		IgnoreFuncBodies: !ours, Sizes: c.sizes,
		Importer: importerFunc(func(path string) (*types.Package, error) {
			if mapped := p.ImportMap[path]; mapped != "" {
				path = mapped
			}
			return c.done[path], nil
		}),
		Error: func(err error) { t.Error(err) },
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		conf.GoVersion = "go" + strings.TrimPrefix(p.Module.GoVersion, "go")
	}
	c.done[p.ImportPath], _ = conf.Check(p.ImportPath, fset, files, nil)
}

type importerFunc func(string) (*types.Package, error)

func (f importerFunc) Import(path string) (*types.Package, error) { return f(path) }
