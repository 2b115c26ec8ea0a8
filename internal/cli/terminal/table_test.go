package terminal

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

// A table keeps to the width as long as columns can give way, and loses nothing.
func TestTable(t *testing.T) {
	rows := [][]string{
		{"SERVICE", "STATE", "NETWORK", "PORTS"},
		{"code-reviewer", "up about an hour", "restricted, learning until 12:00:00 UTC", "127.0.0.1:8080->8080/tcp"},
		{"x", "up", "none", ""},
	}
	for _, width := range []int{0, 40, 60, 80, 120} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			var b strings.Builder
			w := NewTable(&b, width)
			for _, r := range rows {
				fmt.Fprintln(w, strings.Join(r, "\t"))
			}
			fmt.Fprintln(w, longLine)
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			for _, line := range lines {
				if n := runewidth.StringWidth(line); width > 0 && n > width {
					t.Errorf("%d columns: %q", n, line)
				}
			}
			if width == 0 && len(lines) != 4 {
				t.Errorf("got %d lines without a limit, want 4:\n%s", len(lines), b.String())
			}
			if got, want := letters(b.String()), letters(fmt.Sprint(rows, longLine)); got != want {
				t.Errorf("something is lost:\n%s", b.String())
			}
		})
	}
}

const longLine = "a line without cells that is longer than any of these widths, so that it is wrapped as text, by words, everywhere but where there is no limit"

// letters are those of a text, sorted: cells that are wrapped beside each other mix
// theirs.
func letters(s string) string {
	b := []byte(strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \n[]", r) {
			return -1
		}
		return r
	}, s))
	slices.Sort(b)
	return string(b)
}

// An indented column isn't made so narrow that its words break, and what goes on of a
// cell has its indent.
func TestTableIndent(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		want  string
	}{
		{"by words", 40, "  source           /tmp/project/a/long/p\n  ./workshop.yaml  ath/workshop.yaml\n"},
		{"within words", 22, "  source    /tmp/proje\n  ./worksh  ct/a/long/\n  op.yaml   path/works\n            hop.yaml\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			w := NewTable(&b, c.width)
			fmt.Fprintln(w, "  source ./workshop.yaml\t/tmp/project/a/long/path/workshop.yaml")
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := b.String(); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
