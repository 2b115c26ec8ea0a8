//go:build linux

package mounttable

import (
	"testing"

	"golang.org/x/sys/unix"
)

// B5: in a worker whose memory is used up, PID 1 looks at its mounts without another file
// and without memory.
func TestLookingAtMountsTakesNothing(t *testing.T) {
	table, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(table.fd) })
	if len(table.mounts) == 0 {
		t.Fatal("no mounts")
	}
	look := func() {
		if changed, err := table.look(); changed || err != nil {
			t.Errorf("changed: %v, %v", changed, err)
		}
	}
	look() // has a buffer from now on
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(100, look)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
