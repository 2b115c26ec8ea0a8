//go:build !windows

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// watchResize signals each change of the terminal's size.
func watchResize(func() (rows, cols uint, ok bool)) (<-chan struct{}, func()) {
	received := make(chan os.Signal, 1)
	resized := make(chan struct{}, 1)
	signal.Notify(received, syscall.SIGWINCH)
	go func() {
		for range received {
			select {
			case resized <- struct{}{}:
			default: // one is waiting already
			}
		}
	}()
	return resized, func() {
		signal.Stop(received)
		close(received)
	}
}
