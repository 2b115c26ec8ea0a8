package diagtext

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const source = "workshop:\n  nåme: Ä-x # ünï\n\tbad: \x1b[31mred\n  long: " +
	"0123456789012345678901234567890123456789012345678901234567890123456789MARK0123456789012345678901234567890123456789\n"

func at(line, c1, c2 int) diag.Range {
	return diag.Range{Filename: "workshop.yaml", Start: diag.Pos{Line: line, Column: c1}, End: diag.Pos{Line: line, Column: c2}}
}

func examples() diag.List {
	return diag.List{
		{Severity: diag.Error, Code: "unknown-key", Summary: `unknown key "nåme"`, Hint: "did you mean \"name\"?\nvalid keys: name, version", Range: at(2, 3, 7)},
		{Severity: diag.Error, Code: "widening", Summary: "a\nsummary, with: 100%", Detail: "Detail one.\nDetail two.", Range: at(2, 9, 12),
			Related: []diag.Related{{Message: "the workshop's line", Range: at(1, 1, 9)}}},
		{Severity: diag.Warning, Code: "open", Summary: "escape \x1b[31m and \u202e", Range: at(3, 7, 10)},
		{Severity: diag.Error, Code: "long", Summary: "a long line", Range: at(4, 79, 83)},
		{Severity: diag.Error, Code: "beyond", Summary: "behind the end of the line", Range: at(1, 40, 0)},
		{Severity: diag.Error, Code: "file", Summary: "the file is empty", Range: diag.Range{Filename: "dir,a:b/x.yaml"}},
		{Severity: diag.Error, Summary: "no place, no code"},
	}
}

func TestWriters(t *testing.T) {
	sources := map[string][]byte{"workshop.yaml": []byte(source)}
	tests := []struct {
		golden string
		write  func(*bytes.Buffer) error
	}{
		{"text.golden", func(b *bytes.Buffer) error { return Text(b, examples(), TextOptions{Sources: sources}) }},
		{"narrow.golden", func(b *bytes.Buffer) error {
			return Text(b, examples(), TextOptions{Sources: sources, Width: 60})
		}},
		{"color.golden", func(b *bytes.Buffer) error {
			return Text(b, examples()[:2], TextOptions{Sources: sources, Color: true})
		}},
		{"nosource.golden", func(b *bytes.Buffer) error { return Text(b, examples(), TextOptions{}) }},
		{"json.golden", func(b *bytes.Buffer) error { return JSON(b, examples()) }},
		{"empty.json.golden", func(b *bytes.Buffer) error { return JSON(b, nil) }},
		{"sarif.golden", func(b *bytes.Buffer) error { return SARIF(b, examples()) }},
		{"github.golden", func(b *bytes.Buffer) error { return GitHub(b, examples()) }},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.write(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", tt.golden)
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), b.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// Ordinary text stays as it is; what isn't seen is an escape.
func TestPrintable(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "Grüße, e\u0301, 漢字, 🙂 → “x”\t.", "Grüße, e\u0301, 漢字, 🙂 → “x”\t."},
		{"controls", "\x1b[31m\x07\r\n\u009b", `\x1b[31m\x07\x0d\x0a\x9b`},
		{"not UTF-8", "a\xff\ufffd", `a\xff\ufffd`},
		{"direction", "\u202ea\u2066", `\u202ea\u2066`},
		{"without width", "Ans\u200bwer\u00ad.\ufeff", `Ans\u200bwer\u00ad.\ufeff`},
		{"fillers and variations", "Answer\u3164.\ufe01\u00a0", `Answer\u3164.\ufe01\u00a0`},
		{"tags", "a\U000e0041", `a\U000e0041`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A file's bytes must not reach the terminal as control sequences.
func FuzzText(f *testing.F) {
	f.Add("a: b\n\x1b[2J", 2, 1, 3, 40)
	f.Add("ä\xff\u202e", 1, 2, 9, 0)
	f.Fuzz(func(t *testing.T, src string, line, c1, c2, width int) {
		l := diag.List{{Severity: diag.Error, Code: "x", Summary: src, Detail: src, Hint: src, Range: at(line%100, c1%1000, c2%1000)}}
		var b bytes.Buffer
		if err := Text(&b, l, TextOptions{Sources: map[string][]byte{"workshop.yaml": []byte(src)}, Width: width % 300}); err != nil {
			t.Fatal(err)
		}
		if err := GitHub(&b, l); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\x07\r\u202e") {
			t.Errorf("control characters in %q", b.String())
		}
	})
}
