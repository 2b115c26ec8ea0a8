package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// aboutPromises are the packages whose texts are lists of promises.
var aboutPromises = []string{"internal/promise/...", "internal/dev/threat/..."}

var (
	isNo          = regexp.MustCompile(`(?i)(\w+ )?\bis no (\w+)`)
	parenthesized = regexp.MustCompile(`\([^()]*\)`)
	promiseNumber = regexp.MustCompile(`\bB\d+\b`)
	explained     = regexp.MustCompile(`explain B\d+`) // a command
	onlyNumber    = regexp.MustCompile(`^B\d+$`)
)

// wording is what a text does against the rules of wording; "" if nothing. A promise
// number alone is data. In a text it supports words, in parentheses after them.
func wording(text string, numbers bool) string {
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		if !strings.EqualFold(m[1], "there ") && m[2] != "longer" && m[2] != "more" {
			return `write "is not a …" or "is not valid …" in place of "` + m[0] + `"`
		}
	}
	if strings.Contains(text, "tells whether") {
		return `write "reports whether" in place of "tells whether"`
	}
	if numbers && !onlyNumber.MatchString(text) {
		if number := promiseNumber.FindString(explained.ReplaceAllString(parenthesized.ReplaceAllString(text, ""), "")); number != "" {
			return "say in words what " + number + " promises, with the number in parentheses after them"
		}
	}
	return ""
}

// TestWording: texts of programs follow the rules of wording that can be checked, and
// no comment says "tells whether".
func TestWording(t *testing.T) {
	files := goFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		listed := func(patterns []string) bool {
			return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, name) })
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, files[name], parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			if strings.Contains(strings.Join(strings.Fields(group.Text()), " "), "tells whether") {
				t.Errorf(`%s: write "reports whether" in place of "tells whether"`, fset.Position(group.Pos()))
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := wording(text, !listed(aboutPromises)); wrong != "" {
				t.Errorf("%s: %s", fset.Position(lit.Pos()), wrong)
			}
			return true
		})
	}
}

func TestWordingRules(t *testing.T) {
	for text, ok := range map[string]bool{
		"it is no file":                                      false,
		"Is no valid name":                                   false,
		"it is no longer there":                              true,
		"there is no route; there is no guard":               true,
		"it is no more than a name":                          true,
		"it is not a file":                                   true,
		"tells whether it holds":                             false,
		"B23, B24 and B25 hold again":                        false,
		"learning: B23 doesn't hold":                         false,
		"egress rules are enforced again (B23–B25)":          true,
		"a worker never gets that (B7, B8): write it to env": true,
		"B23": true,
		"":    true,
	} {
		if wrong := wording(text, true); (wrong == "") != ok {
			t.Errorf("%q: %q", text, wrong)
		}
	}
	if wrong := wording("B23 holds for names", false); wrong != "" {
		t.Errorf("in a list of promises: %s", wrong)
	}
}
