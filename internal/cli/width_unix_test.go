//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/shellquote"
)

// TestWidth: on a terminal, help, tables and hints keep to its width, or to what
// COLUMNS says; elsewhere lines aren't wrapped.
func TestWidth(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	testutil.Require(t, err == nil, "tmux is not installed: scripts/need tmux=tmux")
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "workshop") // by this name it is the program, see TestMain
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"workshop.yaml":  "workshop:\n  name: width\n  container:\n    image: host\n    network: {mode: restricted, allow: [api.example.org, {preset: npm}]}\n  workers: [one]\n",
		"workers/one.md": "---\nname: one\ndescription: Reads\nallowed-tools: Read\n---\nRead.\n",
		"broken.yaml":    "workshop:\n  name: width\n  container:\n    image: host\n    privileged: true\n    network: {mode: restricted, allow: [\"*.github.io\"]}\n  workers: [one]\n",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	socket := filepath.Join(dir, "tmux")
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", socket, "kill-server").Run() })
	if out, err := exec.Command(tmux, "-S", socket, "-f", "/dev/null", "new-session", "-d", "sleep 600").CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	screen := func(t *testing.T, columns int, line string) string {
		t.Helper()
		ended := fmt.Sprintf("ended-%d", len(line)+columns)
		env := "env -u COLUMNS WORKSHOP_ENGINE=docker DOCKER_HOST=unix:///nowhere/docker.sock HOME=" + shellquote.Quote(dir) + " "
		shell := "cd " + shellquote.Quote(dir) + "; " + env + line + "; " + tmux + " wait-for -S " + ended + "; sleep 600"
		run := func(args ...string) string {
			t.Helper()
			out, err := exec.Command(tmux, append([]string{"-S", socket}, args...)...).CombinedOutput()
			if err != nil {
				t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
			}
			return string(out)
		}
		run("new-session", "-d", "-s", ended, "-x", fmt.Sprint(columns), "-y", "250", shell)
		run("wait-for", ended)
		defer run("kill-session", "-t", ended)
		return strings.TrimRight(run("capture-pane", "-p", "-J", "-t", ended), "\n ")
	}
	lines := []string{
		"--help", "up --help", "firewall explain --help", "firewall --help", "explain", "explain B8", "explain mount-not-writable",
		"presets", "presets npm", "firewall show", "firewall explain api.example.org", "validate -f broken.yaml", "up", "wait", "schema x",
	}
	for _, columns := range []int{60, 80, 120} {
		for _, args := range lines {
			t.Run(fmt.Sprint(columns, " ", args), func(t *testing.T) {
				checkWidth(t, columns, screen(t, columns, "./workshop "+args))
			})
		}
	}
	t.Run("COLUMNS", func(t *testing.T) {
		checkWidth(t, 60, screen(t, 120, "COLUMNS=60 ./workshop up --help"))
	})
	t.Run("not a terminal", func(t *testing.T) {
		cmd := exec.Command(program, "explain")
		cmd.Dir, cmd.Env = dir, []string{"COLUMNS=60", "HOME=" + dir}
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(string(out)) {
			widest = max(widest, runewidth.StringWidth(line))
		}
		if widest <= 120 {
			t.Errorf("lines were wrapped at %d columns", widest)
		}
	})
}

// Comments of examples are all beside their commands, or all above.
func TestExamples(t *testing.T) {
	const text = "  workshop up\n  workshop up --dry-run   # the plan\n  workshop up --learn     # find out what to allow"
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, text}, {80, text},
		{40, "  workshop up\n  # the plan\n  workshop up --dry-run\n  # find out what to allow\n  workshop up --learn"},
	} {
		if got := examples(text, c.width); got != c.want {
			t.Errorf("%d columns:\n%s\nwant\n%s", c.width, got, c.want)
		}
	}
}

// checkWidth looks for lines that are wider, but for those that are to be copied:
// commands, and the blocks of `explain`.
func checkWidth(t *testing.T, columns int, text string) {
	t.Helper()
	if text == "" {
		t.Error("the terminal is empty")
	}
	for line := range strings.SplitSeq(text, "\n") {
		text := strings.TrimSpace(line)
		copied := strings.HasPrefix(text, "workshop ") || strings.HasPrefix(text, "mounts: ") || strings.HasPrefix(text, "`") || !strings.Contains(text, " ")
		if n := runewidth.StringWidth(strings.TrimRight(line, " ")); n > columns && !copied {
			t.Errorf("%d columns on a terminal of %d: %q", n, columns, line)
		}
	}
}
