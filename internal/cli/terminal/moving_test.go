//go:build linux

package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
)

// Lines are added while the others are drawn.
func TestMoving(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		t.Fatal(errno)
	}
	terminal := os.NewFile(peer, "tty")
	go func() { _, _ = io.Copy(io.Discard, master) }()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		m := newMoving(terminal, false, true)
		for i := range 300 {
			m.Event(engine.Event{Status: engine.StepStarted, Step: engine.Step{Op: engine.OpStartContainer, Target: fmt.Sprint("container/", i)}})
			time.Sleep(time.Millisecond)
		}
		m.Done()
	}()
	select {
	case <-ended:
		terminal.Close()
	case <-time.After(20 * time.Second):
		t.Fatal("the display stands still")
	}
}

// A display that ends with more lines than mpb's queue has places by default.
func TestMovingEnds(t *testing.T) {
	terminal, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 40 {
				m := newMoving(terminal, false, true)
				for i := range 200 {
					m.Event(engine.Event{Status: engine.StepDone, Step: engine.Step{Op: engine.OpStartContainer, Target: fmt.Sprint("container/", i)}})
				}
				m.Done()
			}
		})
	}
	all.Wait()
}
