//go:build linux

package packaging

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

const root = "../../.."

// program is the built workshop, in a directory of its own.
func program(t *testing.T) string {
	t.Helper()
	if bin := os.Getenv("WORKSHOP_BIN"); bin != "" {
		return bin
	}
	testutil.Require(t, !testing.Short(), "it builds the program")
	dir := t.TempDir()
	output(t, exec.Command("go", "build", "-o", dir+"/workshop", "github.com/llmdo/workshop/cmd/workshop"))
	return dir
}

// step is a step of a composite action.
type step struct {
	Name, ID, Shell, Run string
	Env                  map[string]string
}

func action(t *testing.T) (inputs map[string]map[string]string, steps []step) {
	t.Helper()
	var a struct {
		Name, Description string
		Inputs            map[string]map[string]string
		Outputs           map[string]map[string]string
		Runs              struct {
			Using string
			Steps []step
		}
	}
	b, err := os.ReadFile(root + "/action.yml")
	if err == nil {
		err = yaml.Load(b, &a, yaml.WithKnownFields())
	}
	if err != nil || a.Runs.Using != "composite" || a.Outputs["sarif"]["value"] != "${{ steps.check.outputs.sarif }}" {
		t.Fatalf("%v %+v", err, a)
	}
	return a.Inputs, a.Runs.Steps
}

// Inputs reach the scripts as variables, never as text of a command.
func TestAction(t *testing.T) {
	inputs, steps := action(t)
	used := map[string]bool{}
	for _, s := range steps {
		script := regexp.MustCompile(`^bash "\$GITHUB_ACTION_PATH/(packaging/action/[a-z]+\.sh)"$`).FindStringSubmatch(s.Run)
		if s.Shell != "bash" || script == nil {
			t.Errorf("%s runs %q", s.Name, s.Run)
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, script[1]))
		if err != nil {
			t.Fatal(err)
		}
		for variable, value := range s.Env {
			if !strings.Contains(string(text), variable) {
				t.Errorf("%s doesn't read %s", script[1], variable)
			}
			for _, m := range regexp.MustCompile(`inputs\.([a-z-]+)`).FindAllStringSubmatch(value, -1) {
				used[m[1]] = true
			}
		}
	}
	for name := range inputs {
		if !used[name] {
			t.Errorf("the input %s is not used", name)
		}
	}
}

// run runs a script of the action in a directory, as a runner does.
type runner struct {
	code                 int
	out, summary, output string
	temp, path           string
}

func runScript(t *testing.T, script, dir string, env ...string) runner {
	t.Helper()
	temp := t.TempDir()
	abs, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", filepath.Join(abs, "packaging/action", script))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GITHUB_ACTION_PATH="+abs, "RUNNER_TEMP="+temp, "GITHUB_OUTPUT="+temp+"/output", "GITHUB_STEP_SUMMARY="+temp+"/summary", "GITHUB_PATH="+temp+"/path")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	read := func(name string) string { b, _ := os.ReadFile(filepath.Join(temp, name)); return string(b) }
	return runner{cmd.ProcessState.ExitCode(), string(out), read("summary"), read("output"), temp, read("path")}
}

const aWorker = "---\nname: a\ndescription: Helps\nallowed-tools: Read\n---\nHelp.\n"

func TestActionChecks(t *testing.T) {
	bin := program(t)
	for _, tt := range []struct {
		name, file, text string
		env              []string
		code             int
		annotation       string
		summary          []string
	}{
		{name: "good", text: "workshop:\n  name: x\n  container: {image: host}\n  workers: [a]\n", env: []string{"COMPILE_CHECK=false"}, summary: []string{"- ✅ validate"}},
		{name: "not compiled", text: "workshop:\n  name: x\n  container: {image: host}\n  workers: [a]\n", code: 1,
			summary: []string{"- ✅ validate", "- ❌ compile --check", "workshop compile"}},
		{name: "unknown key", file: "sub/workshop.yaml", text: "workshop:\n  name: x\n  conttainer: {image: host}\n  workers: [a]\n", code: 1,
			annotation: "::error file=sub/workshop.yaml,line=3,", summary: []string{"- ❌ validate", "unknown key"}},
		{name: "markup and commands", text: "workshop:\n  name: x\n  \"</pre><b>::error::x\": 1\n  container: {image: host}\n  workers: [a]\n", code: 1,
			annotation: "::error file=workshop.yaml,line=3,", summary: []string{"&lt;/pre&gt;&lt;b&gt;"}},
		{name: "none", file: "other.yaml", code: 1, env: []string{"FILE=missing.yaml"}, summary: []string{"- ❌ validate"}},
		{name: "a setting", text: "x", env: []string{"STRICT=yes"}, code: 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, file := t.TempDir(), tt.file
			if file == "" {
				file = "workshop.yaml"
			}
			for name, text := range map[string]string{file: tt.text, filepath.Dir(file) + "/workers/a.md": aWorker} {
				if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			got := runScript(t, "check.sh", dir, append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"), "FILE=" + file}, tt.env...)...)
			if got.code != tt.code || !strings.Contains(got.out, tt.annotation) {
				t.Errorf("exit code %d, want %d and %q\n%s", got.code, tt.code, tt.annotation, got.out)
			}
			for _, want := range tt.summary {
				if !strings.Contains(got.summary, want) {
					t.Errorf("the summary lacks %q:\n%s", want, got.summary)
				}
			}
			if strings.Contains(got.summary, "<b>") {
				t.Errorf("markup in the summary:\n%s", got.summary)
			}
			commands(t, got.out)
			if tt.code == 2 || tt.name == "none" {
				return
			}
			var sarif struct{ Runs []struct{ Results []any } }
			b, err := os.ReadFile(strings.TrimSpace(strings.TrimPrefix(got.output, "sarif=")))
			if err == nil {
				err = json.Unmarshal(b, &sarif)
			}
			if err != nil || len(sarif.Runs) != 1 || (len(sarif.Runs[0].Results) > 0) != (tt.annotation != "") {
				t.Errorf("SARIF: %v\n%s", err, b)
			}
		})
	}
}

// commands: the runner obeys annotations, and nothing in what was checked.
func commands(t *testing.T, out string) {
	t.Helper()
	stopped := ""
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if token, ok := strings.CutPrefix(line, "::stop-commands::"); ok && stopped == "" {
			stopped = token
		} else if stopped != "" && line == "::"+stopped+"::" {
			stopped = ""
		} else if stopped == "" && strings.HasPrefix(line, "::") && !regexp.MustCompile(`^::(error|warning|notice) file=`).MatchString(line) {
			t.Errorf("a command: %s", line)
		}
	}
	if stopped != "" {
		t.Error("commands stay stopped")
	}
}

// A release has to have the hash of its list; a version is nothing but a version.
func TestActionInstalls(t *testing.T) {
	name := "workshop_1.2.3_linux_" + runtime.GOARCH
	release := t.TempDir()
	dir := filepath.Join(release, "v1.2.3")
	if err := errors.Join(os.MkdirAll(dir+"/"+name, 0o755), os.WriteFile(dir+"/"+name+"/workshop", []byte("#!/bin/sh\necho workshop v1.2.3\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	output(t, exec.Command("tar", "-C", dir, "-czf", dir+"/"+name+".tar.gz", name))
	data, err := os.ReadFile(dir + "/" + name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	sums := fmt.Sprintf("%x  %s.tar.gz\n", sha256.Sum256(data), name)
	for _, tt := range []struct {
		name, sums string
		env        []string
		ok         bool
	}{
		{"a version", sums, []string{"WANTED=v1.2.3"}, true},
		{"the action's", sums, []string{"REF=v1.2.3"}, true},
		{"another hash", strings.Repeat("0", 64) + "  " + name + ".tar.gz\n", []string{"WANTED=v1.2.3"}, false},
		{"no hash", "", []string{"WANTED=v1.2.3"}, false},
		{"a version that isn't one", sums, []string{"WANTED=v1.2.3/../../other"}, false},
		{"none such", sums, []string{"WANTED=v9.9.9"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := os.WriteFile(dir+"/SHA256SUMS", []byte(tt.sums), 0o644); err != nil {
				t.Fatal(err)
			}
			got := runScript(t, "install.sh", t.TempDir(), append([]string{"RELEASES=file://" + release}, tt.env...)...)
			if (got.code == 0) != tt.ok || tt.ok != strings.Contains(got.out, "workshop v1.2.3\n") || tt.ok != (got.path != "") {
				t.Errorf("exit code %d, path %q\n%s", got.code, got.path, got.out)
			}
		})
	}
}

// The hook runs for the files that `workshop validate` reads.
func TestPreCommitHook(t *testing.T) {
	var hooks []struct {
		ID, Name, Description, Language, Entry, Files string
		PassFilenames                                 bool `yaml:"pass_filenames"`
	}
	b, err := os.ReadFile(root + "/.pre-commit-hooks.yaml")
	if err == nil {
		err = yaml.Load(b, &hooks, yaml.WithKnownFields())
	}
	if err != nil || len(hooks) != 1 || hooks[0].Language != "golang" || hooks[0].PassFilenames {
		t.Fatalf("%v %+v", err, hooks)
	}
	files := regexp.MustCompile(hooks[0].Files)
	for name, want := range map[string]bool{"workshop.yaml": true, "sub/workshop.yaml": true, "workers/a.md": true, ".claude/agents/a.md": true, "README.md": false, "docs/workshop.yaml.md": false} {
		if files.MatchString(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	cmd := exec.Command(strings.Fields(hooks[0].Entry)[0], strings.Fields(hooks[0].Entry)[1:]...)
	bin := program(t)
	cmd.Path, cmd.Err = filepath.Join(bin, cmd.Args[0]), nil
	cmd.Dir = root + "/examples/hello"
	cmd.Env = slices.Clone(os.Environ())
	output(t, cmd)
}
