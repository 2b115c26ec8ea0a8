//go:build unix

package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The hint for a program that only this machine has is lines that can be taken as they
// are, and no words of a worker name anything else.
func TestHintOnHost(t *testing.T) {
	home, project := RealPath(t.TempDir()), RealPath(t.TempDir())
	tool := filepath.Join(home, ".nvm/versions/node/v22/bin/node")
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(tool, "\x7fELF", 0o755)
	write(filepath.Join(home, ".config/gh/bin/gh"), "\x7fELF", 0o755)
	write(filepath.Join(project, "bin/own"), "\x7fELF", 0o755)
	write(filepath.Join(project, "workers/w.md"), "---\nname: w\nallowed-tools: Bash\n---\nWork.\n", 0o644)
	path := strings.Join([]string{filepath.Dir(tool), filepath.Join(home, ".config/gh/bin"), filepath.Join(project, "bin"), "/usr/bin"}, ":")
	env := &Env{Home: home, Dir: project, Lookup: func(name string) (string, bool) { return path, name == "PATH" }}
	worker := func(container string) (*Source, string) {
		file := filepath.Join(project, "workshop.yaml")
		write(file, "workshop:\n  name: a\n  container: "+container+"\n  workers: [w]\n", 0o644)
		s, err := env.Read(t.Context(), file)
		if err != nil || s.Workshop == nil {
			t.Fatal(err, s.Diagnostics)
		}
		return s, file
	}
	root := filepath.Dir(filepath.Dir(tool))
	for _, tt := range []struct {
		name, container string
		programs        []string
		want            []string // parts, in order; none: no hint
	}{
		{"one of the home directory", "{image: host}", []string{"node"},
			[]string{tool, "- {source: ~/.nvm/versions/node/v22, target: " + root + ", outside_project: true}", "PATH: " + filepath.Dir(tool) + ":/usr/local/sbin:", "`workshop up`"}},
		{"beside a PATH of the file", "{image: host, env: {PATH: /a/bin}}", []string{"node"}, []string{"PATH: " + filepath.Dir(tool) + ":/a/bin\n"}},
		{"what no worker gets", "{image: host}", []string{"gh"}, []string{"workers can't have it: ", ".config/gh", "(B7)"}},
		{"one that is there", "{image: host}", []string{"ls"}, nil},
		{"one that nobody has", "{image: host}", []string{"no-such-program", "../x", "a b", ""}, nil},
		{"the project's own", "{image: host}", []string{"own"}, nil},
		{"an image has its own programs", "{image: \"worker:1\"}", []string{"node"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := worker(tt.container)
			got := env.hintOnHost(s, s.Worker("w"), tt.programs...)
			if (got == "") != (tt.want == nil) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			rest := got
			for _, part := range tt.want {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Errorf("got %q, want %q in it", got, part)
				}
				rest = after
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	for text, want := range map[string]string{
		"sh: 1: node: not found":                                             "node",
		"/bin/sh: 1: node: not found":                                        "node",
		"sh: node: not found":                                                "node",
		"bash: line 1: python3.12: command not found":                        "python3.12",
		"bash: node: command not found":                                      "node",
		"zsh:1: command not found: node":                                     "node",
		"env: ‘node’: No such file or directory":                             "node",
		"/usr/bin/env: 'node': No such file or directory":                    "node",
		"make: go: No such file or directory":                                "go",
		`go: exec: "gcc": executable file not found in $PATH`:                "gcc",
		"Error: spawn cargo ENOENT":                                          "cargo",
		"ls: cannot access 'node': No such file or directory":                "",
		"404 Not Found":                                                      "",
		"sh: 1: ../../x: not found":                                          "",
		"fatal: repository 'https://example.org/a' not found":                "",
		"x\x1b[2Jsh: 1: \x1b[31mnode: not found and much more that isn't it": "",
	} {
		t.Run(text, func(t *testing.T) {
			var s Signs
			s.read(text + "\n")
			if got := strings.Join(s.notFound(), " "); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	var s Signs
	for i := range 1000 {
		s.read("sh: 1: p" + strings.Repeat("x", i%100) + ": not found\n")
	}
	if n := len(s.notFound()); n > maxSigns || slices.Contains(s.notFound(), "") {
		t.Errorf("%d are kept", n)
	}
}
