package archtest

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"strings"
	"testing"
)

// public are the packages for importers outside of this module.
var public = []string{"workshop", "workshop/edit", "workshop/worker", "firewall", "firewall/presets", "firewall/request", "compose", "client", "schemas", "diag", "tool"}

// TestPublicTypes: an importer of a public package can name every type that it
// exports, in declarations, signatures, fields and methods. Neither a type of an
// internal package nor an unexported one is reached by them.
func TestPublicTypes(t *testing.T) {
	args := []string{"-export", "-deps", "-json=ImportPath,Export"}
	for _, p := range public {
		args = append(args, "./"+p)
	}
	type exported struct{ ImportPath, Export string }
	all, err := listed[exported]([]string{"GOOS=linux"}, args...)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, p := range all {
		files[p.ImportPath] = p.Export
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	for _, name := range public {
		p, err := imp.Import(module + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		a := api{report: t.Errorf, seen: map[types.Type]bool{}}
		for _, n := range p.Scope().Names() {
			if o := p.Scope().Lookup(n); o.Exported() {
				a.object(p.Path()+"."+n, o)
			}
		}
		if len(a.seen) == 0 {
			t.Errorf("%s exports nothing", p.Path())
		}
	}
}

// TestPublicList: what isn't internal, a program, or of the tests' is public.
func TestPublicList(t *testing.T) {
	want := map[string]bool{}
	for _, p := range public {
		want[p] = true
	}
	for _, p := range packages(t) {
		name, ours := strings.CutPrefix(p.ImportPath, module+"/")
		other := !ours || p.DepOnly || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "e2e/") || name == "e2e" ||
			strings.HasPrefix(name, "bench/") || name == "bench" || strings.HasPrefix(name, "examples/")
		if !other && !want[name] {
			t.Errorf("%s isn't internal and is not listed as public", name)
		}
	}
}

// api walks the types that a package exports.
type api struct {
	report func(format string, args ...any)
	seen   map[types.Type]bool
}

// object looks at what is declared with an exported name.
func (a *api) object(at string, o types.Object) {
	a.walk(at, o.Type())
	if n, ok := o.(*types.TypeName); ok {
		if n, ok := types.Unalias(n.Type()).(*types.Named); ok && n.Obj().Pkg() == o.Pkg() {
			a.declared(at, n)
		}
	}
}

// declared looks at the fields and methods of a type of the package's own.
func (a *api) declared(at string, n *types.Named) {
	a.walk(at, n.Underlying())
	for m := range n.Methods() {
		if m.Exported() {
			a.walk(at+"."+m.Name(), m.Type())
		}
	}
}

// walk follows a type to the names in it.
func (a *api) walk(at string, t types.Type) {
	t = types.Unalias(t)
	if a.seen[t] {
		return
	}
	a.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		a.named(at, t)
	case *types.TypeParam:
		a.walk(at, t.Constraint())
	case *types.Map:
		a.walk(at, t.Key())
		a.walk(at, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		a.walk(at, t.Elem())
	case *types.Signature:
		a.walk(at, t.Params())
		a.walk(at, t.Results())
		for p := range t.TypeParams().TypeParams() {
			a.walk(at, p)
		}
	case *types.Tuple:
		for v := range t.Variables() {
			a.walk(at, v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			switch {
			case f.Exported():
				a.walk(at+"."+f.Name(), f.Type())
			case f.Embedded(): // its fields and methods are promoted
				if n, ok := deref(f.Type()).(*types.Named); ok {
					a.declared(at+"."+f.Name(), n)
				}
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			if m.Exported() {
				a.walk(at+"."+m.Name(), m.Type())
			}
		}
		for e := range t.EmbeddedTypes() {
			a.walk(at, e)
		}
	case *types.Union:
		for term := range t.Terms() {
			a.walk(at, term.Type())
		}
	}
}

// named looks at whether an importer can write the type's name.
func (a *api) named(at string, n *types.Named) {
	for arg := range n.TypeArgs().Types() {
		a.walk(at, arg)
	}
	o := n.Obj()
	switch {
	case o.Pkg() == nil: // of the language
	case strings.Contains("/"+o.Pkg().Path()+"/", "/internal/"):
		a.report("%s: %s is of an internal package: nobody outside can name it", at, n)
	case !o.Exported():
		a.report("%s: %s is not exported: nobody outside can name it", at, n)
	}
}

// deref is the type, or what it points to.
func deref(t types.Type) types.Type {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	return types.Unalias(t)
}
