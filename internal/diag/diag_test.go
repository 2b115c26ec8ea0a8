package diag

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const source = "workshop:\n  nåme: Ä-x # ünï\n\tbad: \x1b[31mred\n  long: " +
	"0123456789012345678901234567890123456789012345678901234567890123456789MARK0123456789012345678901234567890123456789\n"

func at(line, c1, c2 int) Range {
	return Range{Filename: "workshop.yaml", Start: Pos{line, c1, 0}, End: Pos{line, c2, 0}}
}

func examples() List {
	return List{
		{Severity: Error, Code: "unknown-key", Summary: `unknown key "nåme"`, Hint: "did you mean \"name\"?\nvalid keys: name, version", Range: at(2, 3, 7)},
		{Severity: Error, Code: "widening", Summary: "a\nsummary, with: 100%", Detail: "Detail one.\nDetail two.", Range: at(2, 9, 12),
			Related: []Related{{"the workshop's line", at(1, 1, 9)}}},
		{Severity: Warning, Code: "open", Summary: "escape \x1b[31m and \u202e", Range: at(3, 7, 10)},
		{Severity: Error, Code: "long", Summary: "a long line", Range: at(4, 79, 83)},
		{Severity: Error, Code: "beyond", Summary: "behind the end of the line", Range: at(1, 40, 0)},
		{Severity: Error, Code: "file", Summary: "the file is empty", Range: Range{Filename: "dir,a:b/x.yaml"}},
		{Severity: Error, Summary: "no place, no code"},
	}
}

func TestWriters(t *testing.T) {
	sources := map[string][]byte{"workshop.yaml": []byte(source)}
	tests := []struct {
		golden string
		write  func(*bytes.Buffer) error
	}{
		{"text.golden", func(b *bytes.Buffer) error { return WriteText(b, examples(), TextOptions{Sources: sources}) }},
		{"narrow.golden", func(b *bytes.Buffer) error {
			return WriteText(b, examples(), TextOptions{Sources: sources, Width: 60})
		}},
		{"color.golden", func(b *bytes.Buffer) error {
			return WriteText(b, examples()[:2], TextOptions{Sources: sources, Color: true})
		}},
		{"nosource.golden", func(b *bytes.Buffer) error { return WriteText(b, examples(), TextOptions{}) }},
		{"json.golden", func(b *bytes.Buffer) error { return WriteJSON(b, examples()) }},
		{"empty.json.golden", func(b *bytes.Buffer) error { return WriteJSON(b, nil) }},
		{"sarif.golden", func(b *bytes.Buffer) error { return WriteSARIF(b, examples()) }},
		{"github.golden", func(b *bytes.Buffer) error { return WriteGitHub(b, examples()) }},
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

// A file's bytes must not reach the terminal as control sequences.
func FuzzText(f *testing.F) {
	f.Add("a: b\n\x1b[2J", 2, 1, 3, 40)
	f.Add("ä\xff\u202e", 1, 2, 9, 0)
	f.Fuzz(func(t *testing.T, src string, line, c1, c2, width int) {
		l := List{{Severity: Error, Code: "x", Summary: src, Detail: src, Hint: src, Range: at(line%100, c1%1000, c2%1000)}}
		var b bytes.Buffer
		if err := WriteText(&b, l, TextOptions{Sources: map[string][]byte{"workshop.yaml": []byte(src)}, Width: width % 300}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(b.String(), "\x1b\x07\r\u202e") {
			t.Errorf("control characters in %q", b.String())
		}
	})
}

func TestSorted(t *testing.T) {
	l := List{{Summary: "c", Range: at(2, 1, 2)}, {Summary: "b", Range: at(1, 9, 10)}, {Summary: "a", Range: at(1, 2, 3)}}
	var got string
	for _, d := range l.Sorted() {
		got += d.Summary
	}
	if got != "abc" || l[0].Summary != "c" {
		t.Errorf("sorted = %q, original first = %q", got, l[0].Summary)
	}
}
