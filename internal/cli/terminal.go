package cli

import (
	"golang.org/x/term"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
)

// attachTerminal prepares an exec: with a terminal on both sides it becomes
// one, raw, with its size followed; else the signals of the process are passed
// on. restore undoes it and may be called once.
func (a *program) attachTerminal(run *engine.ExecOptions, noTTY bool) (restore func(), err error) {
	if noTTY || !isTerminal(a.In) || !isTerminal(a.Out) {
		names, done := a.Interrupts.Forward()
		run.Signals = names
		return done, nil
	}
	in, out := int(a.In.(fileDescriptor).Fd()), int(a.Out.(fileDescriptor).Fd())
	state, err := term.MakeRaw(in)
	if err != nil {
		return nil, app.Fail(app.CodeExecFailed, "terminal: %w", err)
	}
	run.TTY = true
	run.Size = func() (rows, cols uint, ok bool) {
		w, h, err := term.GetSize(out)
		return uint(h), uint(w), err == nil && w > 0 && h > 0
	}
	resized, stop := watchResize(run.Size)
	run.Resized = resized
	if value := a.Getenv("TERM"); value != "" {
		run.Env = append([]string{"TERM=" + value}, run.Env...)
	}
	return func() {
		stop()
		term.Restore(in, state)
	}, nil
}
