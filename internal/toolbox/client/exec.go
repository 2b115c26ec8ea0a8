package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// Command is one command of a person in a worker.
type Command struct {
	Argv []string
	Env  []string // KEY=VALUE, added to the worker's
	Cwd  string   // empty: the worker's working directory
	// Stdin: nil is an empty one. Stdout and Stderr: nil throws away.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals are forwarded to the command by name ("SIGINT").
	Signals <-chan string
	// TTY gives the command a terminal of the worker's own. What it prints is one
	// stream then, Stdout; Stdin is what is typed there, bytes as they come.
	TTY bool
	// Size tells the terminal's size; nil or not ok: not known. Resized is
	// signalled when it has changed.
	Size    func() (rows, cols uint, ok bool)
	Resized <-chan struct{}
	// Note takes what the worker says of the command's end, if anything: see
	// [protocol.Notes]. nil throws it away.
	Note func(string)
}

// ExitOurs is the exit code where the fault isn't the command's, as Docker's.
const ExitOurs = 125

// ExecError is a command that was not started.
type ExecError struct {
	// Code is what a shell and Docker say of it: 126 can't be executed, 127 not
	// found, 125 anything else.
	Code int
	Err  error
}

func (e *ExecError) Error() string { return e.Err.Error() }
func (e *ExecError) Unwrap() error { return e.Err }

// Exec runs a command in the worker to which conn is a new session, and
// returns its exit code, 128 and the number where a signal ended it. When ctx
// ends, the command is killed, with what it started. A command that wasn't
// started is an [*ExecError], with its code; one whose end nobody saw, because the
// session was lost, a [*wire.LostError]. With any other error the code is 125, as
// Docker's. conn is closed.
func Exec(ctx context.Context, conn io.ReadWriteCloser, c Command) (code int, err error) {
	defer func() { code, err = ofExec(code, err) }()
	s, err := Open(ctx, conn, "workshop exec")
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.exec(ctx, c)
}

// ofExec is the exit code that goes with an error.
func ofExec(code int, err error) (int, error) {
	if refused, ok := errors.AsType[*ExecError](err); ok {
		return refused.Code, err
	}
	if err != nil {
		return ExitOurs, err
	}
	return code, nil
}

func (s *Session) exec(ctx context.Context, c Command) (int, error) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	call, err := s.client.Start(own, "exec", protocol.Exec{
		Argv: c.Argv, Env: c.Env, Cwd: c.Cwd, Stdin: c.Stdin != nil, TTY: c.terminal(),
	})
	if err != nil {
		return 0, err
	}
	x := &execution{client: s.client, call: call, ended: make(chan error, 1)}
	return x.run(ctx, c)
}

// execution is a command that was started.
type execution struct {
	client *wire.Conn
	call   *wire.Outgoing
	exit   protocol.Exit
	ended  chan error // the answer
}

func (x *execution) run(ctx context.Context, c Command) (int, error) {
	if c.Stdin != nil {
		// A blocked read of a terminal is not waited for.
		go func() {
			in := x.call.Stream(wire.Stdin)
			_, _ = io.Copy(in, c.Stdin)
			_ = in.Close()
		}()
	}
	output := make(chan error, 2)
	for n, w := range map[byte]io.Writer{wire.Stdout: c.Stdout, wire.Stderr: c.Stderr} {
		if w == nil {
			w = io.Discard
		}
		// Taken here: a stream that is asked for after the answer is empty.
		r := x.call.Stream(n)
		go func() {
			_, err := io.Copy(w, r)
			output <- err
		}()
	}
	go func() { x.ended <- x.call.Wait(&x.exit) }()
	var result error
	for open, ended := 2, false; open > 0 || !ended; {
		select {
		case err := <-output:
			if open--; err != nil && !ended && x.client.Err() == nil {
				return 0, fmt.Errorf("output of the command: %w", err)
			}
		case result = <-x.ended:
			ended, x.ended = true, nil
		case name, ok := <-c.Signals:
			if !ok {
				c.Signals = nil
				continue
			}
			// One that has just ended gets none any more.
			_ = x.call.Notify("$/signal", map[string]any{"signal": name})
		case _, ok := <-c.Resized:
			if !ok {
				c.Resized = nil
			}
			if size := c.terminal(); size != nil {
				_ = x.call.Notify("$/resize", map[string]any{"rows": size.Rows, "cols": size.Cols})
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx) // the end of its call kills it
		}
	}
	if c.Note != nil && x.exit.Note != "" {
		c.Note(x.exit.Note)
	}
	return x.exit.Code, startError(result)
}

// terminal is what the command's terminal is to be like; nil: it gets none.
func (c *Command) terminal() *protocol.TTY {
	if !c.TTY {
		return nil
	}
	t := &protocol.TTY{}
	if c.Size != nil {
		if rows, cols, ok := c.Size(); ok {
			t.Rows, t.Cols = uint16(min(rows, math.MaxUint16)), uint16(min(cols, math.MaxUint16))
		}
	}
	return t
}

// startError gives the codes of Docker to what the toolbox says of a command
// that it could not start.
func startError(err error) error {
	refused, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err
	}
	code := ExitOurs
	if strings.Contains(refused.Message, `unknown argument "tty"`) {
		return &ExecError{Code: code, Err: errors.New("the worker was brought up by an older workshop, which gives commands no terminal: run `workshop up`, or use --no-tty")}
	}
	switch refused.Code {
	case wire.CodeNotFound:
		code = 127
	case wire.CodeNotExecutable:
		code = 126
	}
	return &ExecError{Code: code, Err: refused}
}
