package cli

import (
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// System is what a command may use of the process and the machine.
type System struct {
	In       io.Reader
	Out, Err io.Writer
	// Lookup reads one variable of the environment.
	Lookup func(string) (string, bool)
	// Dir is the working directory, Home the user's; Home may be empty.
	Dir, Home string
	// Engine connects to an engine. It is called at most once per command.
	Engine EngineFactory
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

// getenv is Lookup without the difference between empty and absent.
func (s *System) getenv(name string) string {
	v, _ := s.Lookup(name)
	return v
}

// abs makes a path of the command line absolute.
func (s *System) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Dir, path)
}

// shown is a path as the user would write it: relative where that is shorter.
func (s *System) shown(path string) string {
	rel, err := filepath.Rel(s.Dir, path)
	if err != nil || strings.HasPrefix(rel, "../../../") || len(rel) >= len(path) {
		return path
	}
	return rel
}

// configDir, stateDir and cacheDir follow the XDG base directories on every
// system, so that one line of documentation is true everywhere.
func (s *System) configDir() string { return s.xdg("XDG_CONFIG_HOME", ".config") }
func (s *System) stateDir() string  { return s.xdg("XDG_STATE_HOME", ".local/state") }
func (s *System) cacheDir() string  { return s.xdg("XDG_CACHE_HOME", ".cache") }

func (s *System) xdg(variable, fallback string) string {
	if dir := s.getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "workshop")
	}
	if s.Home == "" {
		return ""
	}
	return filepath.Join(s.Home, filepath.FromSlash(fallback), "workshop")
}

// homeDir is the user's home directory by the environment. A relative one is
// none: settings would be read from the directory of a workshop.
func homeDir(lookup func(string) (string, bool)) string {
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if v, ok := lookup(name); ok && filepath.IsAbs(v) {
			return v
		}
	}
	return ""
}

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
