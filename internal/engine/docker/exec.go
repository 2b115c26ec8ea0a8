package docker

import (
	"cmp"
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

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/execmark"
	toolbox "github.com/llmdo/workshop/internal/toolbox/client"
)

// Exit codes of Exec, the same as Docker's.
const (
	exitOurs       = toolbox.ExitOurs
	exitCannotRun  = 126 // found, but can't be executed
	exitNoSuchFile = 127 // not found
)

// Exec runs a command in a worker's container and returns its exit code. With an
// error the command didn't complete: the code is 125 if workshop or the engine
// failed, 126 or 127 if the command can't be executed or isn't found.
//
// The API can start a process but not signal it. So the process has a random mark
// in its environment, and a signal is sent by a second exec, of `workshop-init
// signal MARK NAME`, which finds it in /proc. That also kills the command when ctx
// ends.
func (e *Engine) Exec(ctx context.Context, project, service string, o engine.ExecOptions) (int, error) {
	if conn := e.recall(ctx, project, service, o.Directory, o.User); conn != nil {
		return toolbox.Exec(ctx, conn, o.ToolboxCommand())
	}
	w, err := e.running(ctx, project, service, o.Directory)
	if err != nil {
		return exitOurs, err
	}
	switch sameUID, same := sameUser(o.User, w.user); {
	case same:
		conn, err := e.enter(ctx, project, w)
		if err != nil {
			return exitOurs, err
		}
		if conn != nil {
			return toolbox.Exec(ctx, conn, o.ToolboxCommand())
		}
	case sameUID && e.dialInOf(w) == dialInHere:
		return exitOurs, &engine.RefusedError{
			Promise: "B60", Reason: fmt.Sprintf("the worker could block a command with its own uid and another group (%s; the worker is %s) for ever while the engine starts it", o.User, w.user),
			Do: "omit --user, or use another uid",
		}
	}
	if o.Workdir != rootDir && len(o.Command) > 0 {
		o.Command = append([]string{compose.InitPath, "enter", cmp.Or(o.Workdir, "."), "--"}, o.Command...)
	}
	return e.execIn(ctx, w.container.ID, compose.InitPath, o)
}

// sameUser compares a requested user, numeric UID or UID:GID, with the worker's,
// UID:GID. Empty means the worker's.
func sameUser(asked, worker string) (uid, both bool) {
	if asked == "" {
		return true, true
	}
	number := func(s string) string { return strings.TrimLeft(s, "0") }
	askedUID, askedGID, given := strings.Cut(asked, ":")
	workerUID, workerGID, _ := strings.Cut(worker, ":")
	uid = number(askedUID) == number(workerUID)
	return uid, uid && (!given || number(askedGID) == number(workerGID))
}

// rootDir is the working directory of every exec: workshop-init changes to the real
// one from inside (package workdir). The engine would follow magic links.
const rootDir = "/"

// execIn runs the command in / of a container whose workshop-init is program.
func (e *Engine) execIn(ctx context.Context, id, program string, o engine.ExecOptions) (int, error) {
	if len(o.Command) == 0 {
		return exitOurs, errors.New("missing command")
	}
	mark := rand.Text()
	opts := container.ExecOptions{
		User: o.User, Tty: o.TTY, AttachStdin: o.Stdin != nil, AttachStdout: true, AttachStderr: true,
		Env: append(o.Env[:len(o.Env):len(o.Env)], execmark.Env+"="+mark), WorkingDir: rootDir, Cmd: o.Command,
	}
	made, err := answer(ctx, id, func(ctx context.Context) (container.ExecCreateResponse, error) {
		return e.cli.ContainerExecCreate(ctx, id, opts)
	})
	if err != nil {
		return exitOurs, e.execError(err)
	}
	conn, err := e.execAttach(ctx, made.ID, container.ExecAttachOptions{Tty: o.TTY})
	if err != nil {
		return startCode(err.Error()), e.execError(err)
	}
	defer conn.Close()
	s := &execution{e: e, container: id, exec: made.ID, program: program, mark: mark, o: o, conn: conn}
	return s.run(ctx)
}

// execution is one started command.
type execution struct {
	e               *Engine
	container, exec string
	program, mark   string
	o               engine.ExecOptions
	conn            types.HijackedResponse
	out             *heldWriter
}

func (s *execution) run(ctx context.Context) (int, error) {
	s.out = &heldWriter{w: s.o.Stdout}
	if s.o.Stdout == nil {
		s.out.w = io.Discard
	}
	output := make(chan error, 1)
	go func() { output <- s.copyOutput() }()
	if s.o.Stdin != nil {
		// Ends with the connection at the latest; a blocked read of a terminal isn't
		// waited for.
		go func() {
			_, _ = io.Copy(s.conn.Conn, s.o.Stdin)
			_ = s.conn.CloseWrite()
		}()
	}
	s.resize(ctx)
	begun := time.NewTimer(2 * answerWithin)
	defer begun.Stop()
	for {
		select {
		case <-begun.C:
			if !s.begun(ctx) {
				return exitOurs, fmt.Errorf("%w; the command may still start once it responds", &engine.SilentError{Container: s.container})
			}
		case err := <-output:
			if err != nil {
				return exitOurs, fmt.Errorf("output of the command: %w", err)
			}
			return s.end(ctx)
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

// copyOutput demultiplexes the engine's stream. With a terminal there is only one
// stream.
func (s *execution) copyOutput() error {
	errOut := s.o.Stderr
	if errOut == nil {
		errOut = io.Discard
	}
	if s.o.TTY {
		_, err := io.Copy(s.out, s.conn.Reader)
		return err
	}
	return copyFrames(s.out, errOut, s.conn.Reader, false)
}

// begun reports whether the command was started; a process stopped before exec
// never is.
func (s *execution) begun(ctx context.Context) bool {
	state, err := answer(ctx, s.container, func(ctx context.Context) (container.ExecInspect, error) {
		return s.e.cli.ContainerExecInspect(ctx, s.exec)
	})
	return !isSilent(err) && (err != nil || !state.Running || state.Pid != 0)
}

func (s *execution) resize(ctx context.Context) {
	if !s.o.TTY || s.o.Size == nil {
		return
	}
	if rows, cols, ok := s.o.Size(); ok {
		// A process that is ending no longer has a size.
		_ = s.e.cli.ContainerExecResize(ctx, s.exec, container.ResizeOptions{Height: rows, Width: cols})
	}
}

// end returns the exit code. An engine that couldn't start the command writes a
// message to its output, which becomes the error, with Docker's code for it (20.10
// has 126 for both).
func (s *execution) end(ctx context.Context) (int, error) {
	code, pid, err := s.exitCode(ctx)
	if err != nil {
		return exitOurs, err
	}
	if held := strings.TrimSpace(string(s.out.held)); held != "" && pid == 0 && (code == exitCannotRun || code == exitNoSuchFile) {
		if known := startCode(held); known != exitOurs {
			code = known
		}
		return code, errors.New(held)
	}
	return code, s.out.release()
}

// exitCode polls for the code: the stream may end slightly before the engine has
// recorded it.
func (s *execution) exitCode(ctx context.Context) (code, pid int, err error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		state, err := s.e.cli.ContainerExecInspect(ctx, s.exec)
		if err != nil {
			return 0, 0, s.e.execError(err)
		}
		if !state.Running {
			return state.ExitCode, state.Pid, nil
		}
		select {
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// signal sends a signal to the command; it isn't an error if that has ended.
func (s *execution) signal(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	made, err := s.e.cli.ContainerExecCreate(ctx, s.container, container.ExecOptions{
		User: s.o.User, WorkingDir: rootDir, Cmd: []string{s.program, "signal", s.mark, name},
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

// startCode derives the exit code from the engine's message about a command that
// couldn't be started.
func startCode(msg string) int {
	switch {
	case strings.Contains(msg, "executable file not found"), strings.Contains(msg, "no such file or directory"):
		return exitNoSuchFile
	case strings.Contains(msg, "permission denied"), strings.Contains(msg, "is a directory"):
		return exitCannotRun
	}
	return exitOurs
}
