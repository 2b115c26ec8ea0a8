package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/wire"
)

// What a session says of a command has the codes of Docker, and says what to do.
func TestSessionFailure(t *testing.T) {
	refused := func(code, exit int) error {
		return &client.ExecError{Code: exit, Err: &wire.Error{Code: code, Message: "why"}}
	}
	for _, tt := range []struct {
		err  error
		code int
		says string
	}{
		{refused(wire.CodeNotFound, 127), 127, "prog: not found in the worker"},
		{refused(wire.CodeNotExecutable, 126), 126, "prog: can't be executed in the worker"},
		{refused(wire.CodeInvalidParams, 125), app.CodeExecFailed, "prog: why"},
		{&client.ExecError{Code: 125, Err: &wire.Error{Code: wire.CodeInvalidParams, Message: "cwd /d: why"}}, app.CodeExecFailed, "--workdir /d: why"},
		{&client.ExecError{Code: 125, Err: &wire.Error{Code: wire.CodeToolFailed, Message: "workdir /a: why"}}, app.CodeExecFailed, "prog: workdir /a: why"},
		{refused(wire.CodeBusy, 125), app.CodeExecFailed, "prog: why"},
		{fmt.Errorf("no session: %w", &engine.NoToolboxError{Worker: "w"}), app.CodeExecFailed, "workshop up"},
		{&wire.LostError{Cause: io.ErrUnexpectedEOF, Sent: true}, app.CodeExecFailed, "lost while prog ran"},
	} {
		f := sessionFailure(tt.err, "w", "prog", "/d")
		if f == nil || f.Code != tt.code || !strings.Contains(f.Error(), tt.says) {
			t.Errorf("%v: %v", tt.err, f)
		}
	}
	if f := sessionFailure(errors.New("the engine doesn't answer"), "w", "prog", ""); f != nil {
		t.Errorf("not of a session: %v", f)
	}
}
