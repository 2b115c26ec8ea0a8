//go:build linux && amd64

package vm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	containerspec "github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// B4 B13 B41: a worker in a machine, as the engine makes it: its PID 1 says that it is ready,
// tools run in it by the dial-in directory, and a signal ends all of it.
func TestRunWorker(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.startOutlet()
	root, err := busyImage()
	if err == nil {
		err = os.Chmod(root, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings := t.TempDir()
	w := r.startWorker(ourInit(t), *guestSpec(t), func(m *config.Machine, c *containerspec.Container) {
		m.Root = "/vm/root"
		for _, bind := range [][2]string{{root, m.Root}, {settings, "/shares/ro/1"}} {
			c.Mounts = append(c.Mounts, containerspec.Mount{Type: containerspec.Bind, Source: bind[0], Target: bind[1], ReadOnly: true})
		}
		for _, b := range c.Mounts {
			if b.Target == "/shares/rw/0" {
				if err := os.Mkdir(filepath.Join(b.Source, "settings"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	w.says("READY")
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"id; pwd", "uid=65532 gid=65532\n/work\n", 0},
		{"echo made inside >file && cat file", "made inside\n", 0},
		{"cat; exit 7", "what was typed", 7},
	} {
		var out, errs bytes.Buffer
		code, err := client.Exec(t.Context(), w.session(), client.Command{Argv: []string{"sh", "-c", c.line},
			Stdin: bytes.NewReader([]byte("what was typed")), Stdout: &out, Stderr: &errs})
		if code != c.code || err != nil || out.String() != c.want {
			t.Errorf("%s: %d, %v, %q, %q", c.line, code, err, out.String(), errs.String())
		}
	}
	if data, err := os.ReadFile(filepath.Join(w.rw, "file")); string(data) != "made inside\n" || err != nil {
		t.Errorf("its file: %q, %v", data, err)
	}
	if err := unix.Kill(w.pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.ends(0, monitor.PowerOff+5*time.Second)
	if took := time.Since(began); took >= monitor.PowerOff {
		t.Errorf("it was killed after %v, and did not power off", took)
	}
}
