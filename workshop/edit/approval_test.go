package edit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/llmdo/workshop/workshop"
	"github.com/llmdo/workshop/workshop/edit"
)

// ruleCase is a file of testdata/rules: the rules to add, one a line, `TOOL |
// MATCH | APPROVAL`, with `before TOOL | …` behind a ` < `; the file before, and
// the file after or the error.
type ruleCase struct {
	name, path string
	archive    *txtar.Archive
	rules      [][2]*edit.Rule
	in, out    []byte
	err        string
}

func ruleCases(t testing.TB) (out []ruleCase) {
	t.Helper()
	paths, err := filepath.Glob("testdata/rules/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	parse := func(s string) *edit.Rule {
		f := strings.Split(s, " | ")
		if len(f) != 3 {
			t.Fatalf("%q is no rule", s)
		}
		return &edit.Rule{Tool: strings.TrimSpace(f[0]), Match: strings.TrimSpace(f[1]), Approval: strings.TrimSpace(f[2])}
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := ruleCase{name: strings.TrimSuffix(filepath.Base(path), ".txtar"), path: path, archive: a}
		for _, f := range a.Files {
			switch f.Name {
			case "rules":
				for s := range strings.Lines(string(f.Data)) {
					rule, before, found := strings.Cut(strings.TrimSpace(s), " < ")
					x := [2]*edit.Rule{parse(rule)}
					if found {
						x[1] = parse(before)
					}
					c.rules = append(c.rules, x)
				}
			case "in":
				c.in = f.Data
			case "out":
				c.out = f.Data
			case "error":
				c.err = strings.TrimSpace(string(f.Data))
			}
		}
		out = append(out, c)
	}
	return out
}

func (c *ruleCase) add(src []byte) (out []byte, err error) {
	out = src
	for _, r := range c.rules {
		if out, err = edit.AddRule(out, *r[0], r[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func TestAddRule(t *testing.T) {
	crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	forms := map[string]func([]byte) []byte{
		"as it is":        func(b []byte) []byte { return b },
		"CRLF":            crlf,
		"no last newline": func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
		"BOM":             func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
	}
	for _, c := range ruleCases(t) {
		if *update {
			out, err := c.add(c.in)
			f := txtar.File{Name: "out", Data: out}
			if err != nil {
				f = txtar.File{Name: "error", Data: []byte(err.Error() + "\n")}
			}
			c.archive.Files = append(c.archive.Files[:2], f)
			if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for form, as := range forms {
			got, err := c.add(as(c.in))
			if c.err != "" {
				if err == nil || err.Error() != c.err || got != nil {
					t.Errorf("%s, %s: %v, want %s", c.name, form, err, c.err)
				}
				continue
			}
			if diff := cmp.Diff(string(as(c.out)), string(got)); err != nil || diff != "" {
				t.Errorf("%s, %s: %v\n%s", c.name, form, err, diff)
				continue
			}
			if again, err := c.add(got); err != nil || !bytes.Equal(again, got) {
				t.Errorf("%s, %s, a second time: %v\n%s", c.name, form, err, again)
			}
		}
	}
}

// Any file and rule: no panic; what succeeds has the file's own bytes in their
// order, is the same a second time, and means the file and that rule, in its
// place.
func FuzzAddRule(f *testing.F) {
	for _, c := range ruleCases(f) {
		f.Add(c.in, c.rules[0][0].Tool, c.rules[0][0].Match, -1)
		f.Add(c.in, "shell", `echo "${x}" 'y'`, 0)
	}
	paths, _ := filepath.Glob("../../examples/*/workshop.yaml")
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "write_file", "src/**", 0)
	}
	f.Fuzz(func(t *testing.T, src []byte, tool, match string, at int) {
		r := edit.Rule{Tool: tool, Match: match, Approval: "auto"}
		was := loaded(src)
		var before *edit.Rule
		if was != nil && at >= 0 && at < len(was.Approvals.Rules) {
			x := was.Approvals.Rules[at]
			before = &edit.Rule{Tool: x.Tool, Match: x.Match, Approval: string(x.Approval)}
		}
		out, err := edit.AddRule(src, r, before)
		if err != nil {
			if out != nil {
				t.Fatalf("%v, and %q", err, out)
			}
			return
		}
		if !bytes.Equal(src, out) && !insertedOnly(src, out) {
			t.Fatalf("bytes of the file are gone:\n%s\n\n%s", src, out)
		}
		if again, err := edit.AddRule(out, r, before); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second time: %v\n%s\n\n%s", err, out, again)
		}
		if was == nil {
			return
		}
		if tool != "shell" || match != "git status" {
			return // whether it is a rule is for the loader to say
		}
		now := loaded(out)
		if now == nil {
			t.Fatalf("doesn't load any more:\n%s\n\n%s", src, out)
		}
		place := -1
		for i, x := range now.Approvals.Rules {
			if x.Tool == tool && x.Match == match && x.Approval == workshop.ApprovalAuto {
				place = i
				break
			}
		}
		if n := len(now.Approvals.Rules) - len(was.Approvals.Rules); place < 0 || n < 0 || n > 1 || before != nil && place > at {
			t.Fatalf("%d rules more, it stands at %d:\n%s\n\n%s", n, place, src, out)
		}
	})
}
