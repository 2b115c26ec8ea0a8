package command

import (
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
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

// Pasteable completes the command lines of a text: see [System.CommandLine].
func (s *System) Pasteable(text string) string {
	if s.Under == "" && s.projectFlags() == "" {
		return text
	}
	return commandLines().ReplaceAllStringFunc(text, func(found string) string {
		at := strings.Index(found, "workshop ")
		return found[:at] + s.CommandLine(found[at:])
	})
}

// commandLines finds them: after a backquote, or two spaces, && or | in an example.
var commandLines = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("(`|(?m:^  )|&& |\\| )workshop [^`\n&|]+")
})

// CommandLine completes a command line that begins with "workshop", so that it can be
// pasted: with the program's name, and the flags of this one that name the project.
func (s *System) CommandLine(line string) string {
	words, _ := strings.CutPrefix(line, "workshop ")
	verb, _, _ := strings.Cut(words, " ")
	flags := s.projectFlags()
	if strings.HasPrefix(verb, "-") || slices.Contains(withoutProject, verb) || strings.Contains(words, " --help") {
		flags = ""
	}
	return s.Under + "workshop " + flags + words
}

// withoutProject are the verbs that read no project.
var withoutProject = []string{"capabilities", "credential", "doctor", "explain", "init", "vm"}

func (s *System) projectFlags() string {
	if s.Env == nil {
		return ""
	}
	return s.ProjectFlags()
}
