package shellline_test

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/callrule/shellline"
)

func TestParseLine(t *testing.T) {
	plain := map[string][]string{
		"git status":                 {"git", "status"},
		"  git \t status  ":          {"git", "status"},
		`"git" 'status'`:             {"git", "status"},
		`git\ status`:                {"git status"},
		`g"i"t st''atus`:             {"git", "status"},
		`git commit -m "a; b | c"`:   {"git", "commit", "-m", "a; b | c"},
		"git commit -m 'a\n\nb $x'":  {"git", "commit", "-m", "a\n\nb $x"},
		`git show HEAD^ --stat=80`:   {"git", "show", "HEAD^", "--stat=80"},
		`printf "\$x\n\"" \; '*' ""`: {"printf", `$x\n"`, ";", "*", ""},
		`grep 'naïve' x`:             {"grep", "naïve", "x"},
		`"a=b" c`:                    {"a=b", "c"},
	}
	for line, want := range plain {
		if got, ok := shellline.ParseLine(line); !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
	for _, line := range notPlain {
		if got, ok := shellline.ParseLine(line); ok {
			t.Errorf("%q is taken for %q", line, got)
		}
	}
}

var notPlain = []string{
	"", " ", "git status; rm -rf x", "git status & rm x", "git status && rm x", "git status || rm x", "git status | sh",
	"git status\nrm x", "git status\n", "git status \\\nrm", "git sta\\\ntus", "git status\r\nrm x", "git status\rrm",
	"git status $(rm x)", "git status `rm x`", `git status "$(rm x)"`, "git status \"`rm x`\"", "git status ${x}", "git status $x", `git status "$x"`, "git status $((1))",
	"git status > x", "git status < x", "git status 2>&1", "git status <<x\nx", "git status <(rm x)", "git status >&2",
	"GIT_DIR=x git status", "GIT_DIR=x", "A+=1 git status", "PATH=x\tgit status", "git status # x", "#git status",
	"! git status", "!! git status", "git !x", "{ git status; }", "{ git status", "(git status)", "git {status,push}", "git {a..b}", "git st*", "git st?tus", "git [s]tatus",
	"~/git status", "git ~", "git status ~root", "git\u00a0status", "git\u3000status", "gi\u200bt status", "gït status", "git status \x00", "git status 'a\x00b'", "git status '\x1b[2J'",
	"git status 'x", `git status "x`, `git status \`, "git status $'x'", `git status $"x"`, "git status $", `git status "$"`,
	"if git status", "if", "then x", "while git status", "case x", "for x", "until x", "do x", "done", "fi", "esac", "elif x", "else x",
	"time git status", "function git", "select x", "coproc git status", "[[ x ]]", "[ x ]", "'' x", `"" git status`, "git status;", "git status &", "f() git status",
	"git status \xff", "git status '\xff'", strings.Repeat("x", shellline.MaxLine+1), "alias \\\r\n x", "a\vb", "a\fb",
	`git "a\` + "\n" + `b"`,
}

func TestCommands(t *testing.T) {
	for line, want := range map[string][]string{
		"git status":                            {"git status"},
		"a; b && c || d | e & f":                {"a", "b", "c", "d", "e", "f"},
		"echo $(git push) `git pull`":           {"echo ? ?", "git push", "git pull"},
		`echo "x $(git push)"`:                  {"echo ?", "git push"},
		"A=1 git push > x":                      {"git push"},
		"if git push; then x; fi":               {"git push", "x"},
		"f() { git push; }; f":                  {"git push", "f"},
		"cat <(git push)":                       {"cat ?", "git push"},
		"cat <<x\n$(git push)\nx":               {"cat", "git push"},
		"A=$(git push)":                         {"git push"},
		"export A=$(git push)":                  {"export ?", "git push", "export ?", "git push"},
		"[[ $(git push) ]]":                     {"git push", "[[ ? ]]", "git push"},
		"[[ a || git push ]]":                   {"[[ a", "git push ]]"},
		"[[ a || x ]]":                          {"[[ a", "x ]]"},
		"((x))":                                 {"x"},
		"git {push,x} ~ *":                      {"git ? ? ?"},
		"(git push) &":                          {"git push"},
		"git\\\n push":                          {"git push"},
		"! git push # x":                        {"git push"},
		"for i in $(git push); do echo x; done": {"git push", "echo x"},
	} {
		commands, ok := shellline.Commands(line)
		var got []string
		for _, c := range commands {
			var words []string
			for _, w := range c {
				if !w.Literal {
					w.Text = "?"
				}
				words = append(words, w.Text)
			}
			got = append(got, strings.Join(words, " "))
		}
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
	for _, line := range []string{"if x", "'", "a\x00", strings.Repeat("(", 1000), strings.Repeat("$(", 1000)} {
		if got, ok := shellline.Commands(line); ok {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// What is called plain is what real shells make of it: they print the words
// that the program got.
func FuzzParseLine(f *testing.F) {
	for _, line := range append(slices.Clone(notPlain), `git status`, `"a\b" 'c d' \; e=f ^ a^b`, `x "\\" "\a" '\'`, "x '\n' \"\t\"", "x a=b:c %1 +1 -n @", "x 'é\u00a0' -") {
		f.Add(line)
	}
	var shells []string
	for _, s := range []string{"sh", "dash", "bash", "busybox"} {
		if path, err := exec.LookPath(s); err == nil {
			shells = append(shells, path)
		}
	}
	if len(shells) == 0 {
		f.Fatal("there is no shell to compare with")
	}
	f.Fuzz(func(t *testing.T, line string) {
		commands, read := shellline.Commands(line)
		argv, ok := shellline.ParseLine(line)
		if !ok {
			return
		}
		if !read || len(commands) != 1 || len(commands[0]) != len(argv) {
			t.Fatalf("%q is plain, and read as %v %v", line, commands, read)
		}
		for i, w := range commands[0] {
			if !w.Literal || w.Text != argv[i] {
				t.Fatalf("%q: word %d is %v, and %q", line, i, w, argv[i])
			}
		}
		// The program is replaced by words of ours, so that nothing of the line
		// runs; that its first word is read alike is checked as one more word.
		script := `printf '%s\0' x ` + line
		for _, shell := range shells {
			var out bytes.Buffer
			args := []string{"-c", script}
			if strings.HasSuffix(shell, "busybox") {
				args = append([]string{"sh"}, args...)
			} else if strings.HasSuffix(shell, "bash") {
				args = append([]string{"--posix"}, args...)
			}
			cmd := exec.Command(shell, args...)
			cmd.Stdout = &out
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/root"}
			if err := cmd.Run(); err != nil {
				t.Fatalf("%s %q: %v", shell, line, err)
			}
			got := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00")
			if !slices.Equal(got, append([]string{"x"}, argv...)) {
				t.Fatalf("%s reads %q as %q, not %q", shell, line, got[1:], argv)
			}
		}
	})
}
