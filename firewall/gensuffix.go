//go:build ignore

// Gensuffix writes suffixes.txt.gz from the rules that golang.org/x/net/publicsuffix
// keeps in its test, so that both have the same snapshot of the list. The
// package itself is not used: it imports net/http, which a pure package and a
// small workshop-init must not.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	log.SetFlags(0)
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		log.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "publicsuffix", "table_test.go"), nil, 0)
	if err != nil {
		log.Fatal(err)
	}
	var rules []string
	icann := -1
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		switch v.Names[0].Name {
		case "numICANNRules":
			icann, _ = strconv.Atoi(v.Values[0].(*ast.BasicLit).Value)
		case "rules":
			for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
				s, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
				rules = append(rules, s)
			}
		}
		return true
	})
	if icann < 1000 || len(rules) < icann {
		log.Fatalf("found %d rules, %d of them ICANN's: the form of the list has changed", len(rules), icann)
	}
	lines := make([]string, 0, len(rules))
	for i, r := range rules {
		mark := ""
		if rest, ok := strings.CutPrefix(r, "!"); ok {
			r, mark = rest, "!"
		}
		labels := strings.Split(r, ".")
		slices.Reverse(labels)
		section := "i"
		if i >= icann {
			section = "p"
		}
		lines = append(lines, strings.Join(labels, ".")+" "+section+mark)
	}
	slices.Sort(lines)
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		log.Fatal(err)
	}
	for _, l := range lines {
		fmt.Fprintln(w, l)
	}
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("suffixes.txt.gz", out.Bytes(), 0o644); err != nil {
		log.Fatal(err)
	}
}
