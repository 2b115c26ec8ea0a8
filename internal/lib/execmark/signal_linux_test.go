package execmark

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func process(t *testing.T, proc, pid, stat, environ string) {
	t.Helper()
	dir := filepath.Join(proc, pid)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"stat": stat, "environ": environ} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindsTheProcessOfTheExecNotItsChildren(t *testing.T) {
	proc := t.TempDir()
	process(t, proc, "1", "1 (init) S 0 1", Env+"=abc\x00")
	process(t, proc, "7", "7 (sh) S 8 7", "A=1\x00"+Env+"=abc\x00")
	process(t, proc, "8", "8 (a) b) c) S 0 8", "A=1\x00"+Env+"=abc\x00B=2\x00")
	process(t, proc, "9", "9 (other) S 0 9", Env+"=abcd\x00X"+Env+"=abc\x00")
	process(t, proc, "sys", "", "")
	if pid, err := find(proc, "abc"); err != nil || pid != 8 {
		t.Errorf("find = %d, %v; want 8", pid, err)
	}
	if _, err := find(proc, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("err = %v", err)
	}
}

func TestUnknownSignal(t *testing.T) {
	if err := Signal(t.TempDir(), "x", "SIGNOTHING"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("err = %v", err)
	}
}
