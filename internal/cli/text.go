package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/fatih/color"

	"github.com/llmdo/workshop/internal/diag/write"
)

// count is "1 error", "2 errors".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// suggestion names the nearest of the valid words, or all of them.
func suggestion(word string, valid []string) string {
	if near := nearest(word, valid); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "known: " + strings.Join(valid, ", ")
}

// nearest finds the valid word that was probably meant; empty for none.
func nearest(word string, valid []string) string {
	best, distance := "", 3
	for _, v := range valid {
		if d := levenshtein.Distance(word, v, nil); d < distance && d < len(v) {
			best, distance = v, d
		}
	}
	return best
}

// colorErr tells whether the standard error takes colour, colorOut the
// standard output.
func (a *program) colorErr() bool { return !a.set.noColor && isTerminal(a.Err) }
func (a *program) colorOut() bool { return !a.set.noColor && isTerminal(a.Out) }

// paint gives a function that colours text, or leaves it as it is.
func paint(on bool, attributes ...color.Attribute) func(string) string {
	c := color.New(attributes...)
	if on {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return func(s string) string { return c.Sprint(s) }
}

// say writes one line for the person to the standard error, unless --quiet.
func (a *program) say(format string, args ...any) {
	if !a.set.quiet {
		fmt.Fprintf(a.Err, format+"\n", args...)
	}
}

// warn writes one line that a person must not miss, --quiet or not.
func (a *program) warn(format string, args ...any) {
	fmt.Fprintf(a.Err, "workshop: warning: %s\n", indent(fmt.Sprintf(format, args...)))
}

// detail writes one line with -v only.
func (a *program) detail(format string, args ...any) {
	if a.set.verbose && !a.set.quiet {
		fmt.Fprintf(a.Err, "workshop: "+format+"\n", args...)
	}
}

// printable shows text of images, builds and containers: control characters
// as escapes, so that it can't drive the terminal.
func printable(s string) string { return write.Printable(strings.TrimRight(s, "\r\n")) }

// cut shortens to n characters, keeping the end of a name, which tells more.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
