package worker

import (
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/engine"
)

// attachTerminal prepares an exec: with a terminal on both sides it becomes
// one, raw, with its size followed; else the signals of the process are passed
// on. restore undoes it and may be called once.
func (a verbs) attachTerminal(run *engine.ExecOptions, noTTY bool) (restore func(), err error) {
	if noTTY || !terminal.Is(a.In) || !terminal.Is(a.Out) {
		names, done := a.Interrupts.Forward()
		run.Signals = names
		return done, nil
	}
	t, err := terminal.MakeRaw(a.In, a.Out)
	if err != nil {
		return nil, app.Fail(app.CodeExecFailed, "terminal: %w", err)
	}
	run.TTY, run.Size, run.Resized = true, t.Size, t.Resized
	if value := a.Getenv("TERM"); value != "" {
		run.Env = append([]string{"TERM=" + value}, run.Env...)
	}
	return t.Restore, nil
}
