// Package terminal is what a command does with a terminal: it tells one from a
// pipe, measures and colours it, makes it raw, and shows the progress of a plan.
package terminal

import (
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

// Width is the number of columns of a terminal; 0 where the stream is none.
func Width(stream any) int {
	f, ok := stream.(fileDescriptor)
	if !ok {
		return 0
	}
	w, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return w
}

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

// Fit shortens a text to n characters, keeping the end of a name, which tells
// more.
func Fit(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return "…" + string(r[len(r)-n+1:])
}
