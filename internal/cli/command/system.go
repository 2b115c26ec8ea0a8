package command

import (
	"io"
	"regexp"
	"runtime/debug"
	"sync"

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
	// Executable is the absolute path of this program, for configurations that
	// start it; empty: its name.
	Executable string
	// Under is what comes before "workshop" in a command line to paste: "llmdo "
	// or nothing.
	Under string
	// Args are the command line's arguments; nil where there is none.
	Args []string
}

// BuildVersion is the version that the program was linked with, else what the
// build knows of the source.
func (s *System) BuildVersion() string {
	if s.Version != "" {
		return s.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Pasteable puts the program's name before the command lines of a text, which
// all begin with "workshop", so that they can be pasted.
func (s *System) Pasteable(text string) string {
	if s.Under == "" {
		return text
	}
	return commandStart().ReplaceAllString(text, "${1}"+s.Under+"workshop ")
}

// commandStart finds where a command line begins: after a backquote, or two
// spaces, && or | in an example.
var commandStart = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(`|(?m:^  )|&& |\\| )workshop ")
})
