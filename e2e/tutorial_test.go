//go:build linux

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// block is a part of a tutorial: a file, or commands with what they print.
type block struct {
	file, text string // file: "" for commands
	line       int
}

var blockOf = regexp.MustCompile("^```(\\S+) ?(\\S*)$")

// tutorial are the blocks of a document that have a file's name, or are of a console.
func tutorial(t *testing.T, document string) (out []block) {
	t.Helper()
	var in *block
	for i, line := range strings.Split(document, "\n") {
		m := blockOf.FindStringSubmatch(line)
		switch {
		case in == nil && m != nil:
			in = &block{file: m[2], line: i + 1}
			if m[1] != "console" && m[2] == "" {
				in.line = 0
			}
		case in != nil && line == "```":
			if in.line > 0 {
				out = append(out, *in)
			}
			in = nil
		case in != nil:
			in.text += line + "\n"
		}
	}
	return out
}

// shownAs reports whether output is as a document has it, where … is anything.
func shownAs(want, got string) bool {
	var pattern strings.Builder
	for i, part := range strings.Split(want, "…") {
		if i > 0 {
			pattern.WriteString("(?s:.*)")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	text := strings.ReplaceAll(pattern.String(), "\n(?s:.*)\n", "\n(?s:.*)")
	if strings.HasPrefix(text, "(?s:.*)\n") {
		text = "(?s:.*)" + strings.TrimPrefix(text, "(?s:.*)\n")
	}
	return regexp.MustCompile(`^` + text + `$`).MatchString(got)
}

// TestTutorial: the tutorial of docs/sharing.md, command by command, prints what the
// document says.
func TestTutorial(t *testing.T) {
	scenario.OnlyNamespace(t, "it prints which engine was chosen elsewhere")
	scenario.NotRootless(t, "it is a document")
	served := t.TempDir()
	testutil.Git(t, served, "init", "--quiet", "--bare", served+"/acme/sast.git")
	address := testutil.ServeGit(t, served)
	s := scenario.At(t, "docs/sharing.md does what it says", map[string]string{"README": "of a tutorial\n"})
	s.Env = append(s.Env, "HOME="+os.Getenv("HOME"), "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME="+s.TempDir(), "CI=", "GITHUB_ACTIONS=", "GITLAB_CI=", "TF_BUILD=",
		"WORKSHOP_PROJECT_NAME=", "PATH="+filepath.Dir(s.Workshop())+":"+os.Getenv("PATH"))
	for key, value := range map[string]string{
		"url." + address + "/.insteadOf": "https://git.example.org/", "url.file://" + served + "/.pushInsteadOf": "https://git.example.org/",
		"user.name": "somebody", "user.email": "somebody@example.org", "init.defaultBranch": "main",
	} {
		testutil.Git(t, served, "config", "--global", key, value)
	}
	text, err := os.ReadFile(filepath.Join(s.Root, "docs/sharing.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text1, ok := strings.Cut(string(text), "\n## Two repositories, ten minutes\n")
	part, _, _ := strings.Cut(text1, "\n## ")
	if !ok {
		t.Fatal("docs/sharing.md has no tutorial")
	}
	dir, env := s.Dir, []string{}
	for _, b := range tutorial(t, part) {
		if b.file != "" {
			name := filepath.Join(s.Dir, b.file)
			if rest, home := strings.CutPrefix(b.file, "~/"); home {
				name = filepath.Join(os.Getenv("HOME"), rest)
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		for _, command := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, want, _ := strings.Cut(command, "\n")
			if to, is := strings.CutPrefix(line, "cd "); is {
				dir = filepath.Join(dir, to)
				continue
			}
			if set, is := strings.CutPrefix(line, "export "); is {
				env = append(env, set)
				continue
			}
			got, code := shell(t, s, dir, env, line)
			t.Logf("$ %s\n%s", line, got)
			wants := 0
			if i := strings.LastIndex("\n"+want, "\n? "); i >= 0 {
				wants, _ = strconv.Atoi(strings.TrimSpace(want[i+2:]))
				want = want[:i]
			}
			if strings.Contains(want, "error: ") {
				wants = code
			}
			if want = strings.TrimSuffix(want, "\n"); !shownAs(want, strings.TrimSuffix(got, "\n")) || code != wants {
				t.Errorf("$ %s\nexit code %d\n%s", line, code, cmp.Diff(want, strings.TrimSuffix(got, "\n")))
			}
		}
	}
	t.Cleanup(func() { shell(t, s, dir, env, "workshop down") })
}

func shell(t *testing.T, s *scenario.Scenario, dir string, env []string, line string) (out string, code int) {
	t.Helper()
	cmd := s.Program(context.Background(), "/bin/bash", "-c", line)
	cmd.Dir, cmd.Env = dir, append(cmd.Env, env...)
	text, err := cmd.CombinedOutput()
	if failed, is := err.(*exec.ExitError); is {
		code = failed.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(text), code
}
