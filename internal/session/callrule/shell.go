package callrule

import (
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/session/shellline"
	"github.com/llmdo/workshop/internal/tool"
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

// argvOf gives the words of a call, where they are known without a shell.
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

// restricts looks at every command of a line, and behind programs that start
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

func (m command) command(words []shellline.Word, left *int) Certainty {
	is := max(m.begins(words), m.through(words, left))
	if words[0].Literal && isOneOf(path.Base(words[0].Text), starters...) {
		// Where its own arguments end is its matter: each word may begin one.
		for i := 1; i < len(words) && is != Yes; i++ {
			is = max(is, m.begins(words[i:]), m.through(words[i:], left))
		}
	}
	return is
}

// starters run the command that their last arguments are.
var starters = []string{
	"env", "command", "exec", "builtin", "sudo", "doas", "nohup", "nice", "ionice", "time", "timeout", "xargs", "setsid", "stdbuf",
	"busybox", "chroot", "unshare", "strace", "find", "parallel", "watch", "flock", "script",
}

// through looks into what a shell, or eval, is told to run.
func (m command) through(words []shellline.Word, left *int) Certainty {
	if !words[0].Literal {
		return No
	}
	switch path.Base(words[0].Text) {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "fish":
		return m.shell(words[1:], left)
	case "eval":
		return m.text(words[1:], left)
	}
	return No
}

// begins compares the first words. The program may be given by its path.
func (m command) begins(words []shellline.Word) Certainty {
	for i, want := range m {
		switch {
		case i >= len(words):
			return No
		case !words[i].Literal:
			return Maybe // it may even be several words, or none
		case i == 0 && path.Base(words[0].Text) == path.Base(want):
		case words[i].Text != want:
			return No
		}
	}
	return Yes
}

// shell looks at the arguments of a shell.
func (m command) shell(args []shellline.Word, left *int) Certainty {
	for i, w := range args {
		switch {
		case !w.Literal:
			return Maybe
		case strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "c"):
			if i+1 == len(args) {
				return No
			}
			return m.text(args[i+1:i+2], left)
		case !strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "+"):
			return No // a script
		}
	}
	return Maybe // what comes on its standard input
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
