package panics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestB60_EveryGoroutine: in the packages that read what a worker or a server
// sends, each goroutine is started through this package, or calls it. Those that
// only pass results on are listed.
func TestB60_EveryGoroutine(t *testing.T) {
	listed := map[string]string{
		"dns/cache.go c.fly":      "calls Serve around what it asks",
		"egress/egress.go func":   "closes connections that came too late",
		"control/connect.go func": "workshop-init connect: a process of its own",
	}
	var files []string
	for _, dir := range []string{"proxy", "dns", "egress", "inbound", "control", "tlshello"} {
		found, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", dir, len(found), err)
		}
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			started, ok := starts(n)
			if !ok || recovers(started) {
				return true
			}
			name := strings.TrimPrefix(filepath.ToSlash(path), "../") + " " + text(started)
			if _, ok := listed[name]; !ok {
				t.Errorf("%s: %s starts a goroutine without panics.Go or panics.Try", fset.Position(n.Pos()), text(started))
			}
			seen[name] = true
			return true
		})
	}
	for name, why := range listed {
		if !seen[name] {
			t.Errorf("%s (%s) is listed and not there", name, why)
		}
	}
}

// TestB60_NoticesGoroutines: the test above would notice one.
func TestB60_NoticesGoroutines(t *testing.T) {
	for source, want := range map[string]bool{
		"go f()": true, "go x.f()": true, "go func() { f() }()": true, "wg.Go(func() { f() })": true,
		"go func() { _ = panics.Try(f) }()": false, "go panics.Serve(f, g)": false, "panics.Go(f, g)": false, "x.Go()": false,
	} {
		e, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() { "+source+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		got := false
		ast.Inspect(e, func(n ast.Node) bool {
			started, ok := starts(n)
			got = got || ok && !recovers(started)
			return true
		})
		if got != want {
			t.Errorf("%s: noticed %v, want %v", source, got, want)
		}
	}
}

// starts returns what a statement starts as a goroutine: of go, or of a
// WaitGroup's Go.
func starts(n ast.Node) (ast.Expr, bool) {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call.Fun, true
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" && text(f.X) != "panics" && len(n.Args) == 1 {
			return n.Args[0], true
		}
	}
	return nil, false
}

// recovers reports whether a function calls this package.
func recovers(f ast.Expr) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && text(s.X) == "panics" && (s.Sel.Name == "Try" || s.Sel.Name == "Serve") {
			found = true
		}
		return !found
	})
	return found
}

func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return text(e.X) + "." + e.Sel.Name
	case *ast.FuncLit:
		return "func"
	}
	return "…"
}
