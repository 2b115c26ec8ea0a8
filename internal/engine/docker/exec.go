package docker

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Exit codes of Exec, as Docker's own.
const (
	exitOurs       = 125 // the engine or we failed
	exitCannotRun  = 126 // found, but can't be executed
	exitNoSuchFile = 127 // not found
)

// EnvExec marks the process of an exec, so that a signal finds it.
const EnvExec = "WORKSHOP_EXEC"

// Exec runs a command in a service's container and returns its exit code. The
// code is 125 with an error if we or the engine failed; 126 and 127, if the
// command can't be executed or is not there.
//
// The API can start a process but not signal it. So the process carries a
// random mark in its environment, and a signal is a second exec, of
// `workshop-init signal MARK NAME`, that finds it in /proc. When ctx ends, the
// command is killed so.
func (e *Engine) Exec(ctx context.Context, project, service string, o engine.ExecOptions) (int, error) {
	c, err := e.one(ctx, project, service)
	if err != nil {
		return exitOurs, err
	}
	if c.State != "running" {
		return exitOurs, &engine.NotRunningError{Project: project, Services: []string{service}, State: c.State}
	}
	return e.execIn(ctx, c.ID, o)
}

func (e *Engine) execIn(ctx context.Context, id string, o engine.ExecOptions) (int, error) {
	if len(o.Command) == 0 {
		return exitOurs, errors.New("no command is given")
	}
	mark := rand.Text()
	opts := container.ExecOptions{
		User: o.User, Tty: o.TTY, AttachStdin: o.Stdin != nil, AttachStdout: true, AttachStderr: true,
		Env: append(o.Env[:len(o.Env):len(o.Env)], EnvExec+"="+mark), WorkingDir: o.Workdir, Cmd: o.Command,
	}
	made, err := e.cli.ContainerExecCreate(ctx, id, opts)
	if err != nil {
		return exitOurs, e.execError(err)
	}
	conn, err := e.cli.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{Tty: o.TTY})
	if err != nil {
		return startCode(err.Error()), e.execError(err)
	}
	defer conn.Close()
	s := &execution{e: e, container: id, exec: made.ID, mark: mark, o: o, conn: conn}
	return s.run(ctx)
}

// execution is one command that was started.
type execution struct {
	e               *Engine
	container, exec string
	mark            string
	o               engine.ExecOptions
	conn            types.HijackedResponse
}

func (s *execution) run(ctx context.Context) (int, error) {
	output := make(chan error, 1)
	go func() { output <- s.copyOutput() }()
	if s.o.Stdin != nil {
		// Ends with the connection at the latest; a blocked read of a terminal
		// is not waited for.
		go func() {
			_, _ = io.Copy(s.conn.Conn, s.o.Stdin)
			_ = s.conn.CloseWrite()
		}()
	}
	s.resize(ctx)
	for {
		select {
		case err := <-output:
			if err != nil {
				return exitOurs, fmt.Errorf("output of the command: %w", err)
			}
			return s.exitCode(ctx)
		case <-s.o.Resized:
			s.resize(ctx)
		case name, ok := <-s.o.Signals:
			if !ok {
				s.o.Signals = nil
				continue
			}
			s.signal(ctx, name)
		case <-ctx.Done():
			s.signal(context.WithoutCancel(ctx), "SIGKILL")
			return exitOurs, context.Cause(ctx)
		}
	}
}

// copyOutput takes the engine's stream apart. With a terminal there is one
// stream only.
func (s *execution) copyOutput() error {
	out, errOut := s.o.Stdout, s.o.Stderr
	if out == nil {
		out = io.Discard
	}
	if errOut == nil {
		errOut = io.Discard
	}
	if s.o.TTY {
		_, err := io.Copy(out, s.conn.Reader)
		return err
	}
	_, err := stdcopy.StdCopy(out, errOut, bufio.NewReaderSize(s.conn.Reader, 64<<10))
	return err
}

func (s *execution) resize(ctx context.Context) {
	if !s.o.TTY || s.o.Size == nil {
		return
	}
	if rows, cols, ok := s.o.Size(); ok {
		// A process that is just ending has no size any more.
		_ = s.e.cli.ContainerExecResize(ctx, s.exec, container.ResizeOptions{Height: rows, Width: cols})
	}
}

// exitCode asks for the code; the stream may end a moment before the engine
// has noted it.
func (s *execution) exitCode(ctx context.Context) (int, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		state, err := s.e.cli.ContainerExecInspect(ctx, s.exec)
		if err != nil {
			return exitOurs, s.e.execError(err)
		}
		if !state.Running {
			return state.ExitCode, nil
		}
		select {
		case <-ctx.Done():
			return exitOurs, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// signal sends a signal to the command; that it is gone already is no error.
func (s *execution) signal(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	made, err := s.e.cli.ContainerExecCreate(ctx, s.container, container.ExecOptions{
		User: s.o.User, Cmd: []string{compose.InitPath, "signal", s.mark, name},
	})
	if err == nil {
		_ = s.e.cli.ContainerExecStart(ctx, made.ID, container.ExecStartOptions{Detach: true})
	}
}

func (e *Engine) execError(err error) error {
	if cerrdefs.IsConflict(err) {
		return fmt.Errorf("%w: run `workshop up`", err)
	}
	return e.explain(err)
}

// startCode reads from the engine's words why a command could not be started.
func startCode(msg string) int {
	switch {
	case strings.Contains(msg, "executable file not found"), strings.Contains(msg, "no such file or directory"):
		return exitNoSuchFile
	case strings.Contains(msg, "permission denied"), strings.Contains(msg, "is a directory"):
		return exitCannotRun
	}
	return exitOurs
}
