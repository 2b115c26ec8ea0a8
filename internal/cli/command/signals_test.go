package command

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/app"
)

// TestInterrupts: the first signal cancels, the second ends the process, and
// a command that asked for them gets them instead.
func TestInterrupts(t *testing.T) {
	codes := make(chan int, 1)
	ctx, in := NewInterrupts(t.Context(), func(code int) { codes <- code })
	defer in.Stop()
	in.Watch()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	names, done := in.Forward()
	self.Signal(syscall.SIGTERM)
	if got := <-names; got != "SIGTERM" {
		t.Errorf("forwarded %q", got)
	}
	done()
	self.Signal(os.Interrupt)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), app.ErrInterrupted) {
		t.Error(context.Cause(ctx))
	}
	self.Signal(os.Interrupt)
	if code := <-codes; code != app.CodeInterrupted {
		t.Errorf("exit %d", code)
	}
}

// TestSignalsThatNobodyTakes: a command that hangs before it takes a signal is
// ended by the second.
func TestSignalsThatNobodyTakes(t *testing.T) {
	codes := make(chan int, 1)
	_, in := NewInterrupts(t.Context(), func(code int) { codes <- code })
	defer in.Stop()
	in.Watch()
	_, done := in.Forward()
	defer done()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for !in.hangs() {
		self.Signal(syscall.SIGTERM)
		time.Sleep(10 * time.Millisecond)
	}
	self.Signal(syscall.SIGTERM)
	select {
	case code := <-codes:
		if code != app.CodeInterrupted {
			t.Errorf("exit %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
}
