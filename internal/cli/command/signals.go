package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/llmdo/workshop/internal/app"
)

// Interrupts are the signals of the process. The first SIGINT or SIGTERM
// cancels the command's context, the second ends the process at once, wherever it
// hangs; while a command has called [Interrupts.Forward], they go to it instead,
// as long as it takes them. Before [Interrupts.Watch] a signal ends the process:
// nothing has begun.
type Interrupts struct {
	mu      sync.Mutex
	forward chan<- string
	watch   func()
	hangup  func()
	stop    func()
}

// NewInterrupts makes the context that they cancel. exit ends the process.
func NewInterrupts(ctx context.Context, exit func(int)) (context.Context, *Interrupts) {
	ctx, cancel := context.WithCancelCause(ctx)
	received := make(chan os.Signal, 4)
	in := &Interrupts{}
	in.watch = func() {
		signal.Notify(received, os.Interrupt, syscall.SIGTERM)
		go func() {
			for s := range received {
				if in.forwarded(s) {
					continue
				}
				if ctx.Err() != nil || in.hangs() {
					exit(app.CodeInterrupted)
				}
				cancel(app.ErrInterrupted)
			}
		}()
	}
	in.hangup = func() {
		if !signal.Ignored(syscall.SIGHUP) { // else by nohup
			signal.Notify(received, syscall.SIGHUP)
		}
	}
	in.stop = func() {
		signal.Stop(received)
		close(received)
		cancel(nil)
	}
	return ctx, in
}

// Watch begins to take the signals. It starts threads and stops the world once, a
// seventh of what `workshop --version` would take, so a verb calls it that works.
func (in *Interrupts) Watch() {
	if in != nil {
		in.watch()
	}
}

// Hangup takes SIGHUP, too, until the returned function is called: for what has to clean
// up when its terminal goes.
func (in *Interrupts) Hangup() (done func()) {
	if in == nil {
		return func() {}
	}
	in.hangup()
	return func() { signal.Reset(syscall.SIGHUP) }
}

// Stop leaves the signals to the system again, and ends the context.
func (in *Interrupts) Stop() { in.stop() }

// Forward passes the signals on to a command, by name ("SIGINT"), until the
// returned function is called. To a receiver that hasn't taken the one before
// nothing is forwarded: with an engine that hangs, the second ends the process.
func (in *Interrupts) Forward() (names <-chan string, done func()) {
	if in == nil {
		return nil, func() {}
	}
	c := make(chan string, 1)
	in.set(c)
	return c, func() { in.set(nil) }
}

func (in *Interrupts) set(c chan<- string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.forward = c
}

// hangs reports whether a receiver has not taken the last signal.
func (in *Interrupts) hangs() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.forward != nil && len(in.forward) == cap(in.forward)
}

// forwarded hands a signal on and reports whether somebody took it.
func (in *Interrupts) forwarded(s os.Signal) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.forward == nil {
		return false
	}
	name := "SIGINT"
	switch s {
	case syscall.SIGTERM:
		name = "SIGTERM"
	case syscall.SIGHUP:
		name = "SIGHUP"
	}
	select {
	case in.forward <- name:
		return true
	default:
		return false
	}
}
