package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agext/levenshtein"

	"github.com/llmdo/workshop/internal/diagtext"
)

// WorkersText is "one", "one and two", "one, two and three".
func WorkersText(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// WhenText is a time of day here, with its zone, and the day where that isn't
// today.
func WhenText(t time.Time) string {
	t = t.Local()
	if now := time.Now(); t.YearDay() != now.YearDay() || t.Year() != now.Year() {
		return t.Format("2006-01-02 15:04 MST")
	}
	return t.Format("15:04:05 MST")
}

// Count is "1 error", "2 errors".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Suggestion names the nearest of the valid words, or all of them.
func Suggestion(word string, valid []string) string {
	if near := Nearest(word, valid); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known: " + strings.Join(valid, ", ")
}

// Nearest finds the valid word that was probably meant; empty for none. A slip
// changes a third of a word at most, or swaps two letters.
func Nearest(word string, valid []string) string {
	best, distance := "", max(1, len(word)/3)+1
	for _, v := range valid {
		d := levenshtein.Distance(word, v, nil)
		if d == 2 && swapped(word, v) {
			d = 1
		}
		if d < distance && d < len(v) {
			best, distance = v, d
		}
	}
	return best
}

// swapped reports whether two words have the same letters, in another order.
func swapped(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return string(x) == string(y)
}

// Printable shows text of images, builds and containers: control characters
// as escapes, so that it can't drive the terminal.
func Printable(s string) string { return diagtext.Printable(strings.TrimRight(s, "\r\n")) }

// AreText is "a is" or "a and b are".
func AreText(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// Indent keeps the lines of one message together. What a worker, an image or an
// engine said may be in them, so each is printable.
func Indent(s string) string {
	return strings.ReplaceAll(PrintableLines(strings.TrimRight(s, "\n")), "\n", "\n  ")
}

// PrintableLines is [Printable] of each line.
func PrintableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Printable(l)
	}
	return strings.Join(lines, "\n")
}
