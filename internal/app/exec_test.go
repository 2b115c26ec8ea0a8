package app

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/toolbox/wire"
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
		{refused(wire.CodeInvalidParams, 125), CodeExecFailed, "prog: why"},
		{&client.ExecError{Code: 125, Err: &wire.Error{Code: wire.CodeInvalidParams, Message: "cwd /d: why"}}, CodeExecFailed, "--workdir /d: why"},
		{&client.ExecError{Code: 125, Err: &wire.Error{Code: wire.CodeToolFailed, Message: "workdir /a: why"}}, CodeExecFailed, "prog: workdir /a: why"},
		{refused(wire.CodeBusy, 125), CodeExecFailed, "prog: why"},
		{fmt.Errorf("no session: %w", &engine.NoToolboxError{Worker: "w"}), CodeExecFailed, "workshop up"},
		{&wire.LostError{Cause: io.ErrUnexpectedEOF, Sent: true}, CodeExecFailed, "lost while prog ran"},
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

// A first word that is no program is explained where it looks like something else.
func TestHintWords(t *testing.T) {
	for _, c := range []struct {
		program string
		code    int
		want    string
	}{
		{"ls -la", 127, "it is one word with blanks; a shell splits it: `workshop exec dev -- sh -c 'ls -la'`"},
		{"-w", 127, "flags go before the worker, as in `workshop exec -w /scratch dev -- ls`"},
		{"lss", 127, ""},
		{"a b", 126, ""},
	} {
		if got := strings.Join(Fail(c.code, "x").hintWords(c.program, "dev").Hints, "\n"); got != c.want {
			t.Errorf("%s: got %q, want %q", c.program, got, c.want)
		}
	}
}

func TestNumericUser(t *testing.T) {
	for user, want := range map[string]bool{
		"": true, "1000": true, "1000:1000": true, "bob": false, "1000:": false, ":1": false, "1:2:3": false, "-1": false, "4294967296": false,
	} {
		if numericUser(user) != want {
			t.Errorf("numericUser(%q) = %v", user, !want)
		}
	}
}

// TestIsRoot keeps B4 on the way of exec --user.
func TestIsRoot(t *testing.T) {
	for user, want := range map[string]bool{
		"": false, "0": true, "00": true, "0:1000": true, "root": true, "root:x": true, "1000": false, "1000:0": false, "worker": false, "10": false,
	} {
		if isRoot(user) != want {
			t.Errorf("isRoot(%q) = %v", user, !want)
		}
	}
}

// TestIsReserved keeps the guard's uid its own on the way of exec --user.
func TestIsReserved(t *testing.T) {
	for user, want := range map[string]bool{
		"": false, "1000": false, "65530": false, "65532": true, "065532": true, "65531:1000": true, "1000:65532": true, "guard": false,
	} {
		if isReserved(user) != want {
			t.Errorf("isReserved(%q) = %v", user, !want)
		}
	}
}
