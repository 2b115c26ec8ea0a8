//go:build linux

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Repositories as people have them: what `init` writes comes up as it is, and their own
// tests pass in the worker.
func TestInit(t *testing.T) {
	for _, tt := range []struct {
		name, program string
		files         map[string]string
		test          []string
	}{
		{"node", "npm", map[string]string{
			"package.json": `{"name": "app", "version": "1.0.0", "scripts": {"test": "node test.js"}}`,
			"index.js":     "exports.two = () => 2\n",
			"test.js":      "const {two} = require('./index'); require('fs').writeFileSync('made.txt', String(two())); if (two() !== 2) process.exit(1)\n",
		}, []string{"npm", "test"}},
		{"go", "go", map[string]string{
			"go.mod":      "module example.org/app\n\ngo 1.20\n",
			"app.go":      "package app\n\nfunc Two() int { return 2 }\n",
			"app_test.go": "package app\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestTwo(t *testing.T) {\n\tif Two() != 2 {\n\t\tt.Fatal(Two())\n\t}\n\tif err := os.WriteFile(\"made.txt\", []byte(\"2\"), 0o644); err != nil {\n\t\tt.Fatal(err)\n\t}\n}\n",
		}, []string{"go", "test", "./..."}},
		{"make", "make", map[string]string{
			"Makefile": "test:\n\tsh ./test.sh\n",
			"test.sh":  "printf 2 > made.txt && test \"$(cat made.txt)\" = 2\n",
		}, []string{"make", "test"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := exec.LookPath(tt.program)
			testutil.Require(t, err == nil, "no "+tt.program)
			if tt.name == "go" && !scenario.DockerAPI() {
				t.Skip("on docker alone: Go compiles its library first; rootless, docs/recipes/go.md has it")
			}
			s := scenario.At(t, "init, up, and the tests of a repository with "+tt.program+" pass inside", tt.files)
			said := s.Expect(0, "init")
			if want := "workshop exec dev -- " + strings.Join(tt.test, " "); !strings.Contains(said.Err, want+"`") {
				t.Errorf("init doesn't say %s:\n%s", want, said.Err)
			}
			s.Expect(0, "validate", "--strict")
			s.Up()
			// Go compiles its library first, which takes minutes on a busy machine.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if out, err := s.Command(ctx, append([]string{"exec", "dev", "--"}, tt.test...)...).CombinedOutput(); err != nil {
				t.Fatalf("the tests inside: %v\n%s", err, out)
			}
			if got := s.Read("made.txt"); got != "2" {
				t.Errorf("made.txt is %q", got)
			}
			s.Expect(2, "exec", "dev", "--", "sh", "-c", "echo >> workshop.yaml")
			s.Expect(0, "ps", "--strict")
			s.Expect(0, "down")
		})
	}
}

// A toolchain of the home directory is shown to a worker read-only, at its own path and
// alone: what is beside it stays hidden (B7).
func TestInitToolchain(t *testing.T) {
	scenario.Once(t, "the command line does it, for any engine")
	s := scenario.At(t, "init mounts the toolchain that the caller's shell finds, and nothing beside it", map[string]string{
		"package.json": `{"name": "app", "scripts": {"test": "x"}}`,
	})
	home := s.TempDir()
	root := filepath.Join(home, ".nvm/versions/node/v99.0.0")
	for name, text := range map[string]string{
		filepath.Join(root, "bin/node"):    "#!/bin/sh\necho v99.0.0\n",
		filepath.Join(home, ".nvm/secret"): "hidden\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		s.Give(name)
	}
	s.Env = append(s.Env, "HOME="+home, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	said := s.Expect(0, "init")
	if !strings.Contains(said.Err, "~/.nvm/versions/node/v99.0.0") {
		t.Errorf("init doesn't name the toolchain:\n%s", said.Err)
	}
	s.Expect(0, "validate", "--strict")
	s.Up()
	if got := s.Expect(0, "exec", "dev", "--", "node").Out; got != "v99.0.0\n" {
		t.Errorf("node says %q", got)
	}
	s.Expect(1, "exec", "dev", "--", "sh", "-c", "cat "+filepath.Join(home, ".nvm/secret"))
	s.Expect(2, "exec", "dev", "--", "sh", "-c", "echo > "+filepath.Join(root, "bin/x"))
	s.Expect(0, "down")
}

// A program that isn't found inside, and that this machine has, is named with the lines
// that show it.
func TestNotFoundInside(t *testing.T) {
	scenario.Once(t, "the command line does it, for any engine")
	s := scenario.At(t, "a program that only this machine has is named when it isn't found", map[string]string{"Makefile": "test:\n\ttrue\n"})
	home := s.TempDir()
	tool := filepath.Join(home, ".cargo/bin/only-here")
	if err := os.MkdirAll(filepath.Dir(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, []byte("#!/bin/sh\necho here\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.Give(tool)
	s.Env = append(s.Env, "HOME="+home, "PATH="+filepath.Dir(tool)+":"+os.Getenv("PATH"))
	s.Expect(0, "init")
	s.Up()
	for _, argv := range [][]string{{"only-here"}, {"sh", "-c", "only-here"}} {
		said := s.Expect(127, append([]string{"exec", "dev", "--"}, argv...)...)
		if want := "- {source: ~/.cargo/bin/only-here, target: " + tool + ", outside_project: true}"; !strings.Contains(said.Err, want) {
			t.Errorf("%v: want %s in\n%s", argv, want, said.Err)
		}
	}
	s.Expect(0, "down")
}
