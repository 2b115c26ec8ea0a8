//go:build linux

package workerinit

import (
	"os"
	"sync"
	"testing"
)

// Workers, each with PID 1, try the same directory at the same time, where files without a
// name can't be made.
func TestNamedFiles(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if f, err := makeNamedFile(dir); err != nil || int(f.owner) != os.Getuid() {
					t.Errorf("%+v, %v", f, err)
				}
			}
		})
	}
	all.Wait()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
