package testutil

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// WhileExchanged calls f again and again for a quarter of a second, while the
// two paths of each pair are exchanged as fast as it goes. The first error of f
// is the test's, and so is a call that doesn't return.
func WhileExchanged(t testing.TB, f func() error, pairs ...[2]string) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, p := range pairs {
				_ = unix.Renameat2(unix.AT_FDCWD, p[0], unix.AT_FDCWD, p[1], unix.RENAME_EXCHANGE)
			}
		}
	}()
	done := make(chan error, 1)
	go func() {
		var err error
		for end := time.Now().Add(250 * time.Millisecond); err == nil && time.Now().Before(end); {
			err = f()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%q: %v", pairs, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%q: it hangs", pairs)
	}
	close(stop)
	<-stopped
}
