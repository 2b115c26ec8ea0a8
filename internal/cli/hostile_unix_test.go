//go:build unix

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

func TestOwnerMay(t *testing.T) {
	for before, want := range map[int]int{0o777: 0o077, 0o022: 0o022, 0o377: 0o077, 0: 0} {
		was := syscall.Umask(before)
		ownerMay()
		if got := syscall.Umask(was); got != want {
			t.Errorf("%#o becomes %#o, want %#o", before, got, want)
		}
	}
}

// TestHostileFiles: B60: whatever stands in the place of a file of the project,
// each command that reads it ends at once and names it.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	shapes := map[string]func(name string) error{
		"is a named pipe": func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"is a directory":  func(name string) error { return os.Mkdir(name, 0o700) },
		"is a device":     func(name string) error { return syscall.Mknod(name, syscall.S_IFCHR|0o600, 1<<8|5) }, // zero, which has no end
		"larger than": func(name string) error {
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(name, 30<<30)
		},
	}
	for _, c := range []struct {
		file  string
		verbs []string
	}{
		{"project/workshop.yaml", []string{"ps", "exec worker true", "logs", "down", "validate", "compile", "up --dry-run", "firewall allow example.org --save"}},
		{"project/workers/worker.md", []string{"validate", "compile", "up"}},
		{"project/workers/result.json", []string{"validate", "compile"}},
		{"project/.env", []string{"validate", "compile --check"}},
		{"project/extra.env", []string{"--env-file extra.env validate"}},
		{"project/.workshop/hostile/compose.yaml", []string{"compile --check", "compile"}},
		{"project/.workshop/hostile/generated.sha256", []string{"compile --check", "compile"}},
		{"project/result", []string{"check-result worker result"}},
		{"project/.mcp.json", []string{"mcp install claude worker", "mcp install claude worker --write"}},
		{"project/.codex/config.toml", []string{"mcp install codex --remove --write"}},
		{"home/config/workshop/config.yaml", []string{"ps", "validate"}},
	} {
		for shape, put := range shapes {
			t.Run(path.Base(c.file)+" "+shape, func(t *testing.T) {
				if shape == "is a device" && os.Getuid() != 0 {
					t.Skip("makes a device: needs root")
				}
				dir := t.TempDir()
				hostileProject(t, dir)
				name := filepath.Join(dir, filepath.FromSlash(c.file))
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.RemoveAll(name), put(name)); err != nil {
					t.Fatal(err)
				}
				for _, verb := range c.verbs {
					out := runBounded(t, dir, strings.Fields(verb)...)
					if !strings.Contains(out, path.Base(c.file)) || !strings.Contains(out, shape) {
						t.Errorf("workshop %s: got %q, want %s and that it %s", verb, out, path.Base(c.file), shape)
					}
				}
			})
		}
	}
}

func hostileProject(t *testing.T, dir string) {
	t.Helper()
	for name, text := range map[string]string{
		"project/workshop.yaml":       "workshop:\n  name: hostile\n  version: 1.0.0\n  container: {image: debian}\n  workers: [worker]\n",
		"project/workers/worker.md":   "---\nallowed-tools: Read\nresult_type: result.json\n---\nwork\n",
		"project/workers/result.json": "{}",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckIsPrintable: no text of a file in the place of a generated one drives the
// terminal when compile --check shows it.
func TestCheckIsPrintable(t *testing.T) {
	dir := t.TempDir()
	hostileProject(t, dir)
	var out bytes.Buffer
	compile := func(args ...string) int {
		sys := &command.System{Env: &app.Env{Dir: filepath.Join(dir, "project"), Lookup: func(string) (string, bool) { return "", false }}, Out: &out, Err: &out}
		return Run(t.Context(), NewWorkshop, append([]string{"compile"}, args...), sys)
	}
	if compile() != app.CodeOK || compile("--check") != app.CodeOK {
		t.Fatal(out.String())
	}
	file := filepath.Join(dir, "project", ".workshop", "hostile", "compose.yaml")
	if err := os.WriteFile(file, []byte("services: {}\n\x1b]0;x\a\r::error::x\nlast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if code := compile("--check"); code != app.CodeFailed || strings.ContainsAny(out.String(), "\x1b\a\r") || !strings.Contains(out.String(), `\x1b]0;x\x07\x0d::error::x`) || !strings.Contains(out.String(), "\n-last\n") {
		t.Errorf("got %v, %q", code, out.String())
	}
}

// runBounded runs the program with little memory and little time, and gives what
// it prints; it must fail, and not by a crash.
func runBounded(t *testing.T, dir string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -v 4000000; exec workshop "$@"`, "sh"}, args...)...)
	cmd.Dir = filepath.Join(dir, "project")
	cmd.Env = append(os.Environ(), "HOME="+filepath.Join(dir, "home"), "XDG_CONFIG_HOME="+filepath.Join(dir, "home", "config"),
		"WORKSHOP_ENGINE=docker", "DOCKER_HOST=unix://"+filepath.Join(dir, "no.sock"))
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ctx.Err() != nil || !ok || exit.ExitCode() < 1 || bytes.Contains(out, []byte("goroutine ")) {
		t.Errorf("workshop %s: got %v (%v) and %.400q, want an error at once", strings.Join(args, " "), err, ctx.Err(), out)
	}
	return string(out)
}

// TestSecondSignal: B60: the second SIGINT or SIGTERM ends a command wherever it
// hangs, here in a read that no context ends.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			dir := t.TempDir()
			hostileProject(t, dir)
			cmd := exec.Command("workshop", "check-result", "worker", "-")
			cmd.Dir = filepath.Join(dir, "project")
			cmd.Env = append(os.Environ(), "HOME="+dir)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			// More than a pipe holds: it is taken once the command reads.
			more := bytes.Repeat([]byte(" "), 128<<10)
			if _, err := in.Write(more); err != nil {
				t.Fatal(err)
			}
			cmd.Process.Signal(s)
			for range 3 { // it goes on, in vain
				if _, err := in.Write(more); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			// The kernel and Go join equal signals that nobody has taken yet, so one
			// may be lost on a busy machine.
			again := time.NewTicker(100 * time.Millisecond)
			defer again.Stop()
			for hangs := time.After(20 * time.Second); ; {
				cmd.Process.Signal(s)
				select {
				case err := <-ended:
					if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != app.CodeInterrupted {
						t.Errorf("got %v, want exit code %d", err, app.CodeInterrupted)
					}
					return
				case <-again.C:
				case <-hangs:
					t.Fatal("it goes on after the second signal")
				}
			}
		})
	}
}
