package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// execServer answers as a toolbox does; run stands for the command.
func execServer(t *testing.T, run func(context.Context, *wire.Incoming, protocol.Exec) (any, error)) io.ReadWriteCloser {
	t.Helper()
	host, worker := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = wire.Serve(context.Background(), worker, func(ctx context.Context, c *wire.Incoming) (any, error) {
			if c.Method == "hello" {
				var h protocol.Hello
				if json.Unmarshal(c.Params, &h) != nil || h.Role != protocol.RoleExec || h.Version != wire.Version {
					return nil, &wire.Error{Code: wire.CodeHello, Message: "no such hello"}
				}
				return protocol.Welcome{Version: wire.Version}, nil
			}
			var x protocol.Exec
			if err := json.Unmarshal(c.Params, &x); err != nil {
				return nil, err
			}
			return run(ctx, c, x)
		})
	}()
	t.Cleanup(func() { host.Close(); <-served })
	return host
}

func TestExec(t *testing.T) {
	conn := execServer(t, func(_ context.Context, c *wire.Incoming, x protocol.Exec) (any, error) {
		in, _ := io.ReadAll(c.Stream(wire.Stdin))
		_, _ = c.Stream(wire.Stdout).Write(bytes.Repeat(in, 2))
		_, _ = io.WriteString(c.Stream(wire.Stderr), strings.Join(x.Argv, " ")+strings.Join(x.Env, " ")+x.Cwd)
		return protocol.Exit{Code: 7}, nil
	})
	in := strings.Repeat("0123456789", 200_000)
	var out, errs bytes.Buffer
	code, err := Exec(t.Context(), conn, Command{
		Argv: []string{"a", "b"}, Env: []string{"X=1"}, Cwd: "/d", Stdin: strings.NewReader(in), Stdout: &out, Stderr: &errs,
	})
	if code != 7 || err != nil || out.String() != in+in || errs.String() != "a bX=1/d" {
		t.Errorf("%d, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
}

// Without input there is none; a command that reads isn't kept waiting.
func TestExecWithoutStdin(t *testing.T) {
	conn := execServer(t, func(_ context.Context, _ *wire.Incoming, x protocol.Exec) (any, error) {
		if x.Stdin {
			return protocol.Exit{Code: 1}, nil
		}
		return protocol.Exit{}, nil
	})
	if code, err := Exec(t.Context(), conn, Command{Argv: []string{"a"}}); code != 0 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

func TestExecSignals(t *testing.T) {
	conn := execServer(t, func(_ context.Context, c *wire.Incoming, _ protocol.Exec) (any, error) {
		_, _ = io.WriteString(c.Stream(wire.Stdout), "ready")
		n := <-c.Notified()
		var p struct{ Signal string }
		if n.Method != "$/signal" || json.Unmarshal(n.Params, &p) != nil || p.Signal != "SIGINT" {
			return protocol.Exit{Code: 1}, nil
		}
		return protocol.Exit{Code: 130, Signal: p.Signal}, nil
	})
	signals := make(chan string, 1)
	if code, err := Exec(t.Context(), conn, Command{Argv: []string{"a"}, Signals: signals, Stdout: writer(func([]byte) error {
		signals <- "SIGINT"
		return nil
	})}); code != 130 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
}

// A terminal's size goes with the call, and each change after it.
func TestExecTerminal(t *testing.T) {
	conn := execServer(t, func(_ context.Context, c *wire.Incoming, x protocol.Exec) (any, error) {
		if x.TTY == nil || *x.TTY != (protocol.TTY{Rows: 24, Cols: 65535}) {
			return nil, &wire.Error{Code: wire.CodeToolFailed, Message: "no such terminal"}
		}
		_, _ = io.WriteString(c.Stream(wire.Stdout), "ready")
		n := <-c.Notified()
		var size protocol.TTY
		if n.Method != "$/resize" || json.Unmarshal(n.Params, &size) != nil || size != (protocol.TTY{Rows: 50, Cols: 132}) {
			return protocol.Exit{Code: 1}, nil
		}
		return protocol.Exit{Code: 9}, nil
	})
	rows, cols := uint(24), uint(1<<20)
	resized := make(chan struct{}, 1)
	if code, err := Exec(t.Context(), conn, Command{
		Argv: []string{"a"}, TTY: true, Resized: resized,
		Size: func() (uint, uint, bool) { return rows, cols, true },
		Stdout: writer(func([]byte) error {
			rows, cols = 50, 132
			resized <- struct{}{}
			return nil
		}),
	}); code != 9 || err != nil {
		t.Errorf("%d, %v", code, err)
	}
	old := execServer(t, func(context.Context, *wire.Incoming, protocol.Exec) (any, error) {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: `unknown argument "tty" (there are argv)`}
	})
	if _, err := Exec(t.Context(), old, Command{Argv: []string{"a"}, TTY: true}); err == nil || !strings.Contains(err.Error(), "workshop up") {
		t.Errorf("of an old worker: %v", err)
	}
}

type writer func([]byte) error

func (w writer) Write(b []byte) (int, error) { return len(b), w(b) }

func TestExecProblems(t *testing.T) {
	for name, tt := range map[string]struct {
		answer error
		code   int
	}{
		"not found":      {&wire.Error{Code: wire.CodeNotFound, Message: "m"}, 127},
		"not executable": {&wire.Error{Code: wire.CodeNotExecutable, Message: "m"}, 126},
		"no directory":   {&wire.Error{Code: wire.CodeInvalidParams, Message: "m"}, 125},
	} {
		t.Run(name, func(t *testing.T) {
			conn := execServer(t, func(context.Context, *wire.Incoming, protocol.Exec) (any, error) { return nil, tt.answer })
			_, err := Exec(t.Context(), conn, Command{Argv: []string{"a"}})
			if e, ok := errors.AsType[*ExecError](err); !ok || e.Code != tt.code || e.Error() != "m" {
				t.Errorf("err = %v", err)
			}
		})
	}
	t.Run("its worker goes", func(t *testing.T) {
		var conn io.ReadWriteCloser
		conn = execServer(t, func(context.Context, *wire.Incoming, protocol.Exec) (any, error) {
			conn.Close()
			return protocol.Exit{}, nil
		})
		_, err := Exec(t.Context(), conn, Command{Argv: []string{"a"}})
		if _, ok := errors.AsType[*wire.LostError](err); !ok {
			t.Errorf("err = %v", err)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		host, worker := net.Pipe()
		worker.Close()
		if _, err := Exec(t.Context(), host, Command{Argv: []string{"a"}}); err == nil {
			t.Error("no error")
		} else if _, ok := errors.AsType[*wire.LostError](err); ok {
			t.Errorf("nothing was lost: %v", err)
		}
	})
}

// The end of the context, and of the one who reads the output, ends the call:
// the toolbox kills what a session leaves.
func TestExecIsEnded(t *testing.T) {
	for name, stop := range map[string]func(context.CancelFunc, error) error{
		"cancelled":      func(cancel context.CancelFunc, _ error) error { cancel(); return nil },
		"output is gone": func(_ context.CancelFunc, e error) error { return e },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			conn := execServer(t, func(ctx context.Context, c *wire.Incoming, _ protocol.Exec) (any, error) {
				defer close(ended)
				_, _ = io.WriteString(c.Stream(wire.Stdout), "ready")
				<-ctx.Done()
				return nil, ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := Exec(ctx, conn, Command{Argv: []string{"a"}, Stdout: writer(func([]byte) error {
				return stop(cancel, errors.New("no space"))
			})})
			if err == nil {
				t.Error("no error")
			}
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Error("the call goes on")
			}
		})
	}
}

// B60: who never answers the hello, as a program that the worker stopped, isn't
// waited for.
func TestHelloHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host, worker := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, worker) }()
		_, err := Exec(t.Context(), host, Command{Argv: []string{"true"}})
		if err == nil || !strings.Contains(err.Error(), "no answer in 30s") {
			t.Errorf("err = %v", err)
		}
		worker.Close()
	})
}
