package callrule

import (
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/callrule/shellline"
	"github.com/llmdo/workshop/tool"
)

// command are the words that a command begins with.
type command []string

func parseCommand(match string) (matcher, *Error) {
	words, ok := shellline.ParseLine(match)
	if !ok {
		return nil, &Error{
			Summary: "the match " + quote(match) + " isn't the beginning of one plain command",
			Hint:    "write its first words, such as git status: what a shell would expand or take for an operator is in quotes, and there are no patterns",
		}
	}
	return command(words), nil
}

// argvOf returns the words of a call, where they are known without a shell.
func argvOf(a tool.ShellArgs) ([]string, bool) {
	switch {
	case a.Command != "" && len(a.Argv) > 0:
		return nil, false
	case a.Command != "":
		return shellline.ParseLine(a.Command)
	}
	return a.Argv, len(a.Argv) > 0 && a.Argv[0] != ""
}

// grants wants one plain command. Variables are none: PATH, LD_PRELOAD, GIT_SSH
// and their like make another program of it; and so does another directory
// where the program is relative to it.
func (m command) grants(c Call) bool {
	var a tool.ShellArgs
	if tool.Decode(c.Args, &a) != nil || len(a.Env) > 0 {
		return false
	}
	argv, ok := argvOf(a)
	if !ok || len(argv) < len(m) || !slices.Equal(argv[:len(m)], m) {
		return false
	}
	return a.Cwd == "" || !strings.Contains(argv[0], "/") || argv[0][0] == '/'
}

// restricts looks at every command of a line, and after programs that start
// others. It can't know all of them: it is for mistakes, not for a model that
// hides what it does.
func (m command) restricts(c Call) Certainty {
	var a tool.ShellArgs
	if tool.Decode(c.Args, &a) != nil || (a.Command == "") == (len(a.Argv) == 0) {
		return Maybe
	}
	left := maxText
	if a.Command != "" {
		return m.line(a.Command, &left)
	}
	var words []shellline.Word
	for _, w := range a.Argv {
		words = append(words, shellline.Word{Text: w, Literal: true})
	}
	return m.command(words, &left)
}

// maxText bounds how much text is read for one call, sh -c within sh -c.
const maxText = 4 * shellline.MaxLine

func (m command) line(line string, left *int) Certainty {
	if *left -= len(line) + 64; *left < 0 {
		return Maybe
	}
	commands, ok := shellline.Commands(line)
	if !ok {
		return Maybe
	}
	is := No
	for _, words := range commands {
		is = max(is, m.command(words, left))
	}
	return is
}

// begins compares the first words. The program may be given by its path, and
// options, each with an argument or without, may be between the words:
// `git -C dir push` is `git push`.
func (m command) begins(words []shellline.Word, left *int) Certainty {
	option := false // the word before may take this one as its argument
	at := 0
	for i, want := range m {
		for found := false; !found; at++ {
			if *left--; *left < 0 {
				return Maybe
			}
			if at >= len(words) {
				return No
			}
			switch w := words[at]; {
			case !w.Literal:
				return Maybe // it may even be several words, or none
			case i == 0 && path.Base(w.Text) == path.Base(want), i > 0 && w.Text == want:
				found, option = true, false
			case i == 0:
				return No
			case strings.HasPrefix(w.Text, "-"):
				option = true
			case option:
				option = false
			default:
				return No
			}
		}
	}
	return Yes
}

// text looks at words that are a line.
func (m command) text(words []shellline.Word, left *int) Certainty {
	var line []string
	if *left < 0 {
		return Maybe
	}
	for _, w := range words {
		if !w.Literal {
			return Maybe
		}
		line = append(line, w.Text)
	}
	return m.line(strings.Join(line, " "), left)
}
