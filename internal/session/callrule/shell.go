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
	if a.Command != "" {
		return m.line(a.Command, 0)
	}
	var words []shellline.Word
	for _, w := range a.Argv {
		words = append(words, shellline.Word{Text: w, Literal: true})
	}
	return m.command(words, 0)
}

// maxNested bounds sh -c within sh -c.
const maxNested = 4

func (m command) line(line string, depth int) Certainty {
	commands, ok := shellline.Commands(line)
	if !ok || depth > maxNested {
		return Maybe
	}
	is := No
	for _, words := range commands {
		is = max(is, m.command(words, depth))
	}
	return is
}

func (m command) command(words []shellline.Word, depth int) Certainty {
	is := m.begins(words)
	switch program := path.Base(words[0].Text); {
	case is == Yes || !words[0].Literal:
	case isOneOf(program, "sh", "bash", "dash", "ash", "zsh", "ksh", "fish"):
		is = max(is, m.shell(words[1:], depth))
	case program == "eval":
		is = max(is, m.text(words[1:], depth))
	case isOneOf(program, "env", "command", "exec", "builtin", "sudo", "doas", "nohup", "nice", "ionice", "time", "timeout", "xargs", "setsid", "stdbuf", "busybox", "chroot", "unshare", "strace", "find", "parallel", "watch", "flock", "script"):
		for i := 1; i < len(words) && is != Yes; i++ {
			is = max(is, m.command(words[i:], depth+1))
			if depth > maxNested {
				return max(is, Maybe)
			}
		}
	}
	return is
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
func (m command) shell(args []shellline.Word, depth int) Certainty {
	for i, w := range args {
		switch {
		case !w.Literal:
			return Maybe
		case strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "--") && strings.Contains(w.Text, "c"):
			if i+1 == len(args) {
				return No
			}
			return m.text(args[i+1:i+2], depth)
		case !strings.HasPrefix(w.Text, "-") && !strings.HasPrefix(w.Text, "+"):
			return No // a script
		}
	}
	return Maybe // what comes on its standard input
}

// text looks at words that are a line.
func (m command) text(words []shellline.Word, depth int) Certainty {
	var line []string
	for _, w := range words {
		if !w.Literal {
			return Maybe
		}
		line = append(line, w.Text)
	}
	return m.line(strings.Join(line, " "), depth+1)
}
