package cli

import (
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/llmdo/workshop/internal/app"
)

// System is what a command may use of the process and the machine.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	// Env is what commands have without a terminal.
	*app.Env
	// Interrupts may be nil: then nothing is forwarded.
	Interrupts *Interrupts
	// Program is the absolute path of this program, for configurations that start
	// it; empty: its name.
	Program string

	// under is what stands before "workshop" in a command line to paste.
	under string
	// begin, if there is one, is called before a verb works: what Main does to the
	// process for it. It starts threads and stops the world once, a seventh of what
	// `workshop --version` would take.
	begin func()
	// words are the command line's arguments; nil where there is none.
	words []string
}

// names tells whether the command line may be one of this verb: then the verb
// has its name among the words. The flags of the others are never looked at,
// and are 7% of what a start executes.
func (s *System) names(verb *cobra.Command) bool {
	return s.words == nil || slices.Contains(s.words, verb.Name())
}

// commands puts the program's name before the command lines of a text, which
// all begin with "workshop", so that they can be pasted as they stand.
func (s *System) commands(text string) string {
	if s.under == "" {
		return text
	}
	return commandStart().ReplaceAllString(text, "${1}"+s.under+"workshop ")
}

// commandStart finds where a command line begins: behind a backquote, or two
// spaces, && or | in an example.
var commandStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(`|(?m:^  )|&& |\\| )workshop ")
})

// fileDescriptor is what *os.File has and a buffer has not.
type fileDescriptor interface{ Fd() uintptr }

// isTerminal tells whether a stream is one.
func isTerminal(stream any) bool {
	f, ok := stream.(fileDescriptor)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is the number of columns of a terminal; 0 where the stream is none.
func width(stream any) int {
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
