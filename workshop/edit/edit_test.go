package edit_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/llmdo/workshop/workshop/edit"
)

var update = flag.Bool("update", false, "rewrite the cases' out and error")

// testCase is a file of testdata: what is added, the file before, and either
// the file after or the error.
type testCase struct {
	archive *txtar.Archive
	path    string
	lines   []edit.Line
	in      []byte
	out     []byte // nil where err is set
	err     string
}

// readCases reads testdata/*.txtar. A line is written as
// `allow[@WORKER] TEXT[ // COMMENT]`.
func readCases(t testing.TB) map[string]*testCase {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	out := map[string]*testCase{}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := &testCase{archive: a, path: path}
		for _, f := range a.Files {
			switch f.Name {
			case "lines":
				for s := range strings.Lines(string(f.Data)) {
					c.lines = append(c.lines, parseLine(t, strings.TrimSpace(s)))
				}
			case "in":
				c.in = f.Data
			case "out":
				c.out = f.Data
			case "error":
				c.err = strings.TrimSpace(string(f.Data))
			}
		}
		out[strings.TrimSuffix(filepath.Base(path), ".txtar")] = c
	}
	return out
}

func parseLine(t testing.TB, s string) (l edit.Line) {
	t.Helper()
	list, rest, ok := strings.Cut(s, " ")
	list, l.Worker, _ = strings.Cut(list, "@")
	l.Deny = list == "deny"
	l.Text, l.Comment, _ = strings.Cut(rest, " // ")
	if !ok || list != "allow" && list != "deny" {
		t.Fatalf("%q is no line", s)
	}
	return l
}

func (c *testCase) write(t *testing.T, out []byte, err error) {
	t.Helper()
	files := c.archive.Files[:2] // lines, in
	if err != nil {
		files = append(files, txtar.File{Name: "error", Data: []byte(err.Error() + "\n")})
	} else {
		files = append(files, txtar.File{Name: "out", Data: out})
	}
	c.archive.Files = files
	if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestAdd(t *testing.T) {
	for name, c := range readCases(t) {
		t.Run(name, func(t *testing.T) {
			in := bytes.Clone(c.in)
			got, err := edit.Add(in, c.lines...)
			if !bytes.Equal(in, c.in) {
				t.Fatal("the source was changed in place")
			}
			if *update {
				c.write(t, got, err)
				return
			}
			if err != nil {
				var e *edit.Error
				if got != nil || !errors.As(err, &e) || err.Error() != c.err {
					t.Errorf("error\n%v, want\n%s", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(string(c.out), string(got)); diff != "" || c.err != "" {
				t.Errorf("want error %q; -want +got\n%s", c.err, diff)
			}
			again, err := edit.Add(got, c.lines...)
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("a second time: %v\n%s", err, cmp.Diff(string(got), string(again)))
			}
		})
	}
}

// The same with other ends of lines, without an end of the last one, and with
// a byte order mark.
func TestAddKeepsTheFileForm(t *testing.T) {
	crlf := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) }
	forms := map[string]func([]byte) []byte{
		"CRLF":            crlf,
		"no last newline": func(b []byte) []byte { return bytes.TrimRight(b, "\n") },
		"CRLF, no last":   func(b []byte) []byte { return bytes.TrimRight(crlf(b), "\r\n") },
		"BOM":             func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) },
	}
	for name, c := range readCases(t) {
		for form, as := range forms {
			if len(c.in) == 0 {
				continue
			}
			got, err := edit.Add(as(c.in), c.lines...)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("%s, %s: %v", name, form, err)
				}
				continue
			}
			if diff := cmp.Diff(string(as(c.out)), string(got)); err != nil || diff != "" {
				t.Errorf("%s, %s: %v\n%s", name, form, err, diff)
			}
		}
	}
}

const small = "workshop:\n  container:\n    network: {mode: restricted, allow: []}\n"

// A line can be nothing but one entry of the list.
func TestAddRefusesLines(t *testing.T) {
	for _, text := range []string{
		"", " ", "a, b", "a]", "[a]", "a\nb", "a\n      - b", "&x a", "*x", "!!str a", "{a: &x b}", "{a: {b: c}}", "{a: [[b]]}", "a # b", "'a", `"a`,
		"a\r", "a\u2028b", "\xff", "~", "null", "- a", "? a", "a: b: c", "{", "a }", "\ta", "\ufeffa",
	} {
		if out, err := edit.Add([]byte(small), edit.Line{Text: text}); err == nil {
			t.Errorf("%q: %s", text, out)
		}
	}
	for _, comment := range []string{"a\nb", "a\rb", "a\u2028b", "\xff", "\x00"} {
		if out, err := edit.Add([]byte(small), edit.Line{Text: "a.example.org", Comment: comment}); err == nil {
			t.Errorf("%q: %s", comment, out)
		}
	}
}

// Files that mean nothing here are left alone.
func TestAddRefusesFiles(t *testing.T) {
	for name, in := range map[string]string{
		"empty":        "",
		"null":         "~\n",
		"text":         "x\n",
		"list":         "- workshop\n",
		"two files":    small + "---\n" + small,
		"not YAML":     "workshop: [\n",
		"not UTF-8":    small + "# \xff\n",
		"lone CR":      strings.ReplaceAll(small, "\n", "\r"),
		"NEL":          small + "# a\u0085b\n",
		"too deep":     "workshop: " + strings.Repeat("[", 100) + strings.Repeat("]", 100),
		"too large":    small + strings.Repeat("# comment\n", 200_000),
		"no container": "workshop: {name: x}\n",
	} {
		if out, err := edit.Add([]byte(in), edit.Line{Text: "a.example.org"}); err == nil {
			t.Errorf("%s: %.300s", name, out)
		}
	}
}

func TestErrInherits(t *testing.T) {
	in := []byte("workshop:\n  container: {image: i, network: restricted}\n  workers: [w, {name: v}, {name: u, container: {network: {deny: [a.example.org]}}}]\n")
	for _, w := range []string{"w", "v", "u"} {
		if _, err := edit.Add(in, edit.Line{Worker: w, Text: "a.example.org"}); !errors.Is(err, edit.ErrInherits) {
			t.Errorf("%s: %v", w, err)
		}
	}
	if _, err := edit.Add(in, edit.Line{Worker: "x", Text: "a.example.org"}); err == nil || errors.Is(err, edit.ErrInherits) {
		t.Errorf("unknown worker: %v", err)
	}
	mixed := []byte(strings.Replace(string(in), "{name: v}", "{name: v, container: {network: {allow: []}}}, {name: o, container: {network: {allow: [b.example.org]}}}", 1))
	if got, want := edit.Inheriting(mixed, edit.Line{Text: "a.example.org"}, []string{"w", "v", "u", "o", "x"}), []string{"w", "u", "x"}; !slices.Equal(got, want) {
		t.Errorf("inheriting: %q, want %q", got, want)
	}
	if got := edit.Inheriting([]byte("["), edit.Line{Text: "a.example.org"}, []string{"w"}); got != nil {
		t.Errorf("inheriting in a text that isn't YAML: %q", got)
	}
}
