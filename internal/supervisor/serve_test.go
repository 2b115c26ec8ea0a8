//go:build linux

package supervisor

import (
	"os"
	"runtime"
	"testing"
)

// The directory is named by its number while the socket is made: a collection
// at that moment must not close it.
func TestOpenKeepsTheDirectory(t *testing.T) {
	path := t.TempDir()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 30000 {
		dir, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := open(dir)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}
