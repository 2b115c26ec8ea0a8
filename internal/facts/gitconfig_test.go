package facts

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// What is read of configuration is what git reads: names without subsections, and
// values.
func TestGitConfig(t *testing.T) {
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "no git")
	for name, text := range map[string]string{
		"plain":                  "[core]\n\thooksPath = .githooks\n\tbare\n[include]\npath=a\n",
		"one line":               "[core] hooksPath = x\n[a \"b ] = \\\" c\"] PATH = y\n",
		"comments":               "; [a]\n# b = c\n[core] ; d\nhooksPath = e ; f\n fsmonitor = \"g;h#i\" # j\n",
		"quotes and escapes":     "[core]\nhooksPath = \"a b\"c\\\\d\\\"e\\tf\\ng \"  h  \"  \n",
		"goes on":                "[core]\nhooksPath = a\\\nb\\\n  c\nx = y",
		"line ends of Windows":   "[core]\r\n\thooksPath = a\r\n\tx = b\\\r\nc\r\n",
		"a mark of the encoding": "\ufeff[core]\nhooksPath = a\n",
		"empty":                  "[core]\nx =\ny = \"\"\nz\n",
		"sections":               "[Branch \"a.b\"]\nmerge = a\n[branch\t\"x\"] merge = b\n[alias]merge = c ; [branch \"y\"]\n\tpush = d\\\n[branch \"z\"]\n[e-1]\nf = g\n",
		"a NUL":                  "[core]\nhooksPath = a\x00b\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("git", "config", "--file", file, "--list", "-z").Output()
			if err != nil {
				t.Fatal(err)
			}
			var want, got []string
			for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
				key, value, _ := strings.Cut(entry, "\n")
				section, _, _ := strings.Cut(key, ".")
				want = append(want, section+"."+nameOf(key)+"="+value)
			}
			for name, value := range gitConfig(text) {
				got = append(got, name+"="+value)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("git's, ours:\n%s", diff)
			}
		})
	}
}

func FuzzGitConfig(f *testing.F) {
	f.Add("[core]\n\thooksPath = \"a b\" ; c\n")
	f.Add("[includeIf \"gitdir:x]\"] path = a\\\nb")
	f.Add("\ufeff[a \"\\")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		for name, value := range gitConfig(text) {
			n++
			if nameOf(name) == "" || name != strings.ToLower(name) || len(nameOf(name))+len(value) > len(text) {
				t.Errorf("%q = %q", name, value)
			}
			for _, word := range words(value) {
				if len(word) > len(value) {
					t.Errorf("%q is no word of %q", word, value)
				}
			}
		}
		if n > len(text) {
			t.Errorf("%d variables in %d bytes", n, len(text))
		}
	})
}

func TestGitRefusesBare(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want             bool
	}{
		{"nothing is set", ".gitconfig", "", false},
		{"set", ".gitconfig", "[safe]\n\tbareRepository = explicit\n", true},
		{"set elsewhere", ".config/git/config", "[safe] barerepository = explicit", true},
		{"taken back", ".gitconfig", "[safe]\n\tbareRepository = explicit\n\tbareRepository = all\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", "")
			file := filepath.Join(home, tt.file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(tt.text), 0o644)); err != nil {
				t.Fatal(err)
			}
			if got := GitRefusesBare(home, os.LookupEnv); got != tt.want {
				t.Errorf("GitRefusesBare = %v", got)
			}
		})
	}
}

// The user's configuration may lie elsewhere, or stand in the environment.
func TestGitConfigOfTheEnvironment(t *testing.T) {
	elsewhere := t.TempDir()
	for name, text := range map[string]string{"git/config": "", "file": "[safe]\n\tbareRepository = explicit\n"} {
		write(t, elsewhere, name, text)
	}
	for _, tt := range []struct {
		name, home string // .gitconfig
		env        map[string]string
		want       bool
	}{
		{"another file", "", map[string]string{"GIT_CONFIG_GLOBAL": elsewhere + "/file"}, true},
		{"another file alone", "[safe]\n\tbareRepository = explicit\n", map[string]string{"GIT_CONFIG_GLOBAL": elsewhere + "/git/config"}, false},
		{"another file of the system", "", map[string]string{"GIT_CONFIG_SYSTEM": elsewhere + "/file"}, true},
		{"in a variable", "", map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit"}, true},
		{"taken back by a variable", "", map[string]string{"GIT_CONFIG_GLOBAL": elsewhere + "/file", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.barerepository", "GIT_CONFIG_VALUE_0": "all"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			write(t, home, ".gitconfig", tt.home)
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			if got := GitRefusesBare(home, os.LookupEnv); got != tt.want {
				t.Errorf("GitRefusesBare = %v", got)
			}
		})
	}
}
