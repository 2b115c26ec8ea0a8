// Package terminal is what a command does with a terminal: it measures and
// colours it, lays out text for its width, makes it raw, and shows the progress of a
// plan.
package terminal

import (
	"strconv"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// fileDescriptor is what *os.File has and a buffer has not.
type fileDescriptor interface{ Fd() uintptr }

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := stream.(fileDescriptor)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Width is the number of columns of a terminal, or what the variable COLUMNS
// says; 0 where the stream is not a terminal.
func Width(stream any, columns string) int {
	f, ok := stream.(fileDescriptor)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if n, err := strconv.Atoi(columns); err == nil && n >= minWidth {
		return n
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil || w < minWidth {
		return 0
	}
	return w
}

// minWidth is the narrowest terminal for which text is laid out.
const minWidth = 20

// Paint returns a function that colours text, or leaves it as it is.
func Paint(on bool, attributes ...color.Attribute) func(string) string {
	c := color.New(attributes...)
	if on {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return func(s string) string { return c.Sprint(s) }
}

// Fit shortens a text to n characters, keeping the end of a name, which says
// more.
func Fit(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
