package facts

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// Each worker has a door that its PID 1 can watch, in a directory that nobody
// else enters; a dry run makes none, and `down` takes them away.
func TestDoors(t *testing.T) {
	dir, o := project(t, srcAndOutput)
	write(t, dir, "src/x", "")
	f, _, list := Collect(t.Context(), o)
	if len(list) > 0 {
		t.Fatal(list)
	}
	doors := compose.DialInPaths(o.Compiled, f)
	if len(doors) == 0 {
		t.Fatal("no worker has a door")
	}
	if _, err := os.Lstat(doors[0]); err == nil {
		t.Fatal("a dry run made a door")
	}
	old := syscall.Umask(0o077)
	c, list := judge(t, o)
	syscall.Umask(old)
	if len(list) > 0 {
		t.Fatal(list)
	}
	for _, door := range doors {
		info, err := os.Lstat(door)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != os.ModeDir|0o755 {
			t.Errorf("%s has mode %v", door, info.Mode())
		}
		if parent, err := os.Lstat(filepath.Dir(door)); err != nil || parent.Mode().Perm() != 0o700 {
			t.Errorf("what it lies in: %v, %v", parent.Mode(), err)
		}
	}
	if v := compose.Check(c); len(v) > 0 {
		t.Error(v)
	}
	if err := Forget(RuntimeDirs(o.Workshop.Name.V, dir, o.UID, o.Lookup, o.Home), o.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(doors[0]); err == nil {
		t.Error("it is still there")
	}
}
