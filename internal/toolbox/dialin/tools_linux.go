package dialin

import (
	"context"
	"os"
	"syscall"
	"time"

	"github.com/llmdo/workshop/internal/lib/reaper"
)

// strayWithin bounds the killing of what a session left that was killed itself.
const strayWithin = 10 * time.Second

// strayAgain is when it is looked for again. Threads of a process that is killed end one
// after the other, and what one of them had started may be told of before the last is gone:
// the session still seems to be there then, and nobody tells of its end.
var strayAgain = []time.Duration{100 * time.Millisecond, 2 * time.Second}

// Tools starts a process of the toolbox for each session.
type Tools struct {
	reaper *reaper.Reaper
	null   *os.File
	stray  chan struct{} // look for processes without a session
}

// NewTools returns Tools that start processes with the reaper.
func NewTools(r *reaper.Reaper) (*Tools, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) // later there may be no descriptor left
	if err != nil {
		return nil, err
	}
	return &Tools{reaper: r, null: null, stray: make(chan struct{}, 1)}, nil
}

// Start is what [New] wants.
func (t *Tools) Start(conn int) (done <-chan struct{}, err error) {
	// Nothing of a session goes to our streams, which are the worker's log.
	p, err := t.reaper.Start("/proc/self/exe", []string{"workshop-init", "tools"}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{uintptr(conn), uintptr(conn), t.null.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.Done()
		t.Stray() // it may have been killed
	}()
	return p.Done(), nil
}

// Stray says that a process was killed whose parent is gone. If its session was killed
// too, the others of that session are to follow.
func (t *Tools) Stray() { poke(t.stray) }

// KillStray kills what killed sessions left, when told so by [Tools.Stray], until the
// context ends.
func (t *Tools) KillStray(ctx context.Context) {
	var again []time.Duration
	var next <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.stray:
			again = strayAgain
		case <-next:
			again = again[1:]
		}
		t.reaper.KillStray(strayWithin)
		if t.reaper.Reap() { // KillStray collected what PID 1 would have been told of
			t.Stray()
		}
		next = nil
		if len(again) > 0 {
			next = time.After(again[0])
		}
	}
}
