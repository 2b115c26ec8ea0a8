package callrule

import (
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/tool"
)

// Suggest returns the rule that a person may want for calls like this one: a
// program with its sub-command, the directory of a file, a host, one tool of a
// server. ok is false where no rule would grant the call.
func Suggest(c Call) (match string, ok bool) {
	switch c.Tool {
	case tool.Shell:
		match = suggestCommand(c)
	case tool.ReadFile, tool.WriteFile, tool.EditFile, tool.ListFiles, tool.SearchFiles:
		match = suggestPath(c)
	case tool.FetchURL:
		match = suggestHost(c)
	default:
		r, err := Parse(c.Tool, "")
		return "", err == nil && r.Grants(c)
	}
	if match == "" {
		return "", false
	}
	if r, err := Parse(c.Tool, match); err != nil || !r.Grants(c) {
		return "", false
	}
	return match, true
}

// subCommand is how names of sub-commands look.
var subCommand = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9]*([-:][a-z0-9]+)*$`) })

// withSubCommands are programs whose second word says what they do. Behind any
// other the words are what it works on: then all of them are the rule.
var withSubCommands = []string{
	"apt", "apt-get", "brew", "bundle", "cargo", "composer", "conda", "deno", "docker", "dotnet", "flutter", "gh", "git", "glab",
	"go", "gradle", "helm", "jj", "just", "kubectl", "make", "mix", "mvn", "npm", "pip", "pip3", "pnpm", "poetry", "rake", "rustup", "svn",
	"systemctl", "task", "terraform", "uv", "workshop", "yarn",
}

// runners are sub-commands that run what their next words name.
var runners = []string{"bisect", "do", "exec", "run", "rebase", "submodule", "x", "dlx", "create", "tool", "eval", "filter-branch", "config", "run-script", "generate", "compose", "api", "alias", "difftool", "mergetool"}

var interpreters = []string{"python", "perl", "ruby", "node", "php", "lua", "deno", "bun", "awk", "gawk", "mawk", "tclsh", "psql", "sqlite3", "mysql"}

// runsAnything reports whether a program runs what its arguments or its input say.
func runsAnything(program string) bool {
	name := path.Base(program)
	return isOneOf(name, shells...) || isOneOf(name, starters...) || isOneOf(strings.TrimRight(name, "0123456789."), interpreters...)
}

func suggestCommand(c Call) string {
	var a tool.ShellArgs
	if tool.Decode(c.Args, &a) != nil {
		return ""
	}
	argv, ok := argvOf(a)
	if !ok {
		return ""
	}
	// Of what runs anything, the name alone, or with another program on the
	// standard input, would be a rule for everything.
	if runsAnything(argv[0]) && (len(argv) == 1 || a.Stdin != "") {
		return ""
	}
	if len(argv) > 1 && isOneOf(argv[0], withSubCommands...) && subCommand().MatchString(argv[1]) && !isOneOf(argv[1], runners...) {
		argv = argv[:2]
	}
	words := make([]string, len(argv))
	for i, w := range argv {
		words[i] = word(w)
	}
	return strings.Join(words, " ")
}

// word writes a word as [shellline.ParseLine] reads it.
func word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:@%+=^"
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	if !strings.ContainsAny(s, "\"$`\\") {
		return `"` + s + `"`
	}
	return shellquote.Quote(s)
}

// SuggestFile returns the rule for just the file of a call.
func SuggestFile(c Call) (match string, ok bool) {
	p, ok := filePath(c)
	match = escape(p)
	r, err := Parse(c.Tool, match)
	return match, ok && err == nil && r.Grants(c)
}

// Written is the absolute path of the file that a call writes, as it names it.
func Written(c Call) (file string, ok bool) {
	a, ok := fileArgsOf(c)
	if !ok || c.Tool != tool.WriteFile && c.Tool != tool.EditFile {
		return "", false
	}
	if path.IsAbs(a.path) {
		return path.Clean(a.path), true
	}
	return path.Join("/", c.Workdir, a.path), true
}

// filePath is the path of a call as a rule has it.
func filePath(c Call) (p string, ok bool) {
	a, ok := fileArgsOf(c)
	if !ok || !a.readable() || a.leaves() {
		return "", false
	}
	p = path.Clean(a.path)
	if below, out, ok := glob("*").place(p, c.Workdir); ok && !out {
		p = below
	}
	return p, true
}

func suggestPath(c Call) string {
	a, _ := fileArgsOf(c)
	p, ok := filePath(c)
	if !ok {
		return ""
	}
	dir := p
	if !a.below {
		dir = path.Dir(p)
	}
	switch {
	case a.below && p == ".":
		return "**"
	case dir == "." || strings.Count(dir, "/") < 2 && path.IsAbs(dir): // all of the workspace, or of /etc
		return escape(p)
	}
	return escape(dir) + "/**"
}

// escape makes a path a pattern that is just it.
func escape(p string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`, "{", `\{`, "}", `\}`).Replace(p)
}

func suggestHost(c Call) string {
	t, ok := targetOf(c)
	if !ok || t.addr || t.user {
		return ""
	}
	if t.port != 443 && t.port != 80 {
		return t.name.String() + ":" + strconv.Itoa(int(t.port))
	}
	return t.name.String()
}
