package callrule

import (
	"path"
	"strings"

	"github.com/llmdo/workshop/internal/callrule/shellline"
)

// starters run the command that their last arguments are.
var starters = []string{
	"env", "command", "exec", "builtin", "sudo", "doas", "nohup", "nice", "ionice", "time", "timeout", "xargs", "setsid", "stdbuf",
	"busybox", "toybox", "chroot", "unshare", "nsenter", "setpriv", "strace", "ltrace", "taskset", "chrt", "find", "parallel", "watch",
	"flock", "script", "su", "runuser", "gosu", "su-exec", "tini", "dumb-init", "fakeroot", "npx", "xvfb-run",
}

// lineStarters are those of them that give a shell a line.
var lineStarters = []string{"watch", "su", "runuser", "script", "flock", "parallel"}

var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "rbash"}

// command looks at one command and at what it starts.
func (m command) command(words []shellline.Word, left *int) Certainty {
	is := max(m.begins(words, left), m.through(words, left))
	if !words[0].Literal || !isOneOf(path.Base(words[0].Text), starters...) {
		return is
	}
	name := path.Base(words[0].Text)
	more := isOneOf(name, "xargs", "parallel") // more words come from the input
	if more {
		words = append(words[:len(words):len(words)], shellline.Word{})
	}
	// Where its own arguments end is its matter: each word may begin one.
	for i := 1; i < len(words) && is != Yes; i++ {
		w := words[i]
		if more && w.Literal && path.Base(w.Text) == path.Base(m[0]) {
			is = max(is, Maybe)
		}
		is = max(is, m.begins(words[i:], left), m.through(words[i:], left), m.inside(name, words[i], left))
	}
	return is
}

// inside looks at a word that a starter may split into words, or give to a shell.
func (m command) inside(name string, w shellline.Word, left *int) Certainty {
	if !w.Literal {
		return No
	}
	text, option := w.Text, strings.HasPrefix(w.Text, "-")
	if _, value, ok := strings.Cut(text, "="); option && ok {
		text = value
	}
	switch {
	case isOneOf(name, lineStarters...):
		return m.line(text, left)
	case name == "env": // -S and --split-string
		if short := option && !strings.HasPrefix(w.Text, "--"); short {
			_, text, _ = strings.Cut(text, "S")
		}
		if strings.ContainsAny(text, " \t") {
			return min(m.line(text, left), Maybe)
		}
	}
	return No
}

// through looks into what a shell, or eval, is told to run.
func (m command) through(words []shellline.Word, left *int) Certainty {
	if !words[0].Literal {
		return No
	}
	name := path.Base(words[0].Text)
	switch {
	case isOneOf(name, shells...):
		return m.shell(words[1:], left)
	case name == "eval":
		return m.text(words[1:], left)
	case name == "trap" && len(words) > 1:
		return m.text(words[1:2], left)
	case name == "alias" && len(words) > 1:
		return Maybe
	case isOneOf(name, ".", "source") && len(words) > 1 && input(words[1]):
		return Maybe
	}
	return No
}

// input reports whether a script isn't a file that was there before.
func input(w shellline.Word) bool {
	return !w.Literal || w.Text == "-" || strings.HasPrefix(w.Text, "/dev/") || strings.HasPrefix(w.Text, "/proc/")
}

// shell looks at the arguments of a shell: `-c LINE`, also after and before
// other options (`bash -euo pipefail -c LINE`, `sh -c -- LINE`).
func (m command) shell(args []shellline.Word, left *int) Certainty {
	is, line, seen := No, false, false
	before := "" // the option before
	for _, w := range args {
		switch {
		case !w.Literal && !seen:
			return Maybe
		case !w.Literal:
		case len(w.Text) > 1 && strings.ContainsAny(w.Text[:1], "-+"):
			short := !strings.HasPrefix(w.Text, "--")
			line = line || short && w.Text[0] == '-' && strings.Contains(w.Text, "c")
			before = w.Text
			continue
		case line: // or the argument of an option, or of the line
			is = max(is, m.line(w.Text, left))
			seen = seen || !takesWord(before)
		case takesWord(before):
		case input(w):
			return Maybe
		default:
			return No // a script
		}
		before = ""
	}
	if !line {
		return Maybe // what comes on its standard input
	}
	return is
}

// takesWord reports whether an option of a shell takes the next word: -o pipefail.
func takesWord(option string) bool {
	if strings.HasPrefix(option, "--") {
		return isOneOf(option, "--rcfile", "--init-file")
	}
	return strings.ContainsAny(option, "oO")
}
