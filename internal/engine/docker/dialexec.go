package docker

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/docker/docker/api/types/container"
)

// dialExec starts workshop-init in a container and connects to its standard input
// and output. Program and connection end together, or when ctx does. The final error
// is a [saidError] with the program's stderr, or the engine's message if it can't
// start the program; mine recognises the program's output by its first byte.
func (e *Engine) dialExec(ctx context.Context, id string, command []string, mine func(first byte) bool) (*execConn, error) {
	made, err := answer(ctx, id, func(ctx context.Context) (container.ExecCreateResponse, error) {
		return e.cli.ContainerExecCreate(ctx, id, container.ExecOptions{
			AttachStdin: true, AttachStdout: true, AttachStderr: true, WorkingDir: rootDir, Cmd: command,
		})
	})
	if err != nil {
		return nil, e.execError(err)
	}
	conn, err := e.execAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return nil, e.execError(err)
	}
	r, w := io.Pipe()
	go func() {
		var problem lastWords
		err := copyFrames(&answers{w: w, problem: &problem, mine: mine}, &problem, conn.Reader, false)
		if text := strings.TrimSpace(problem.String()); err == nil && text != "" {
			err = &saidError{text}
		}
		if err == nil {
			err = io.EOF
		}
		w.CloseWithError(err)
	}()
	stop := context.AfterFunc(ctx, conn.Close)
	return &execConn{Reader: r, Writer: conn.Conn, detach: func() { stop() }, close: func() error {
		stop()
		conn.Close()
		return r.Close()
	}, cut: func() {
		w.CloseWithError(io.EOF)
		conn.Close()
	}}, nil
}

// saidError is the final message of a program, or of the engine in its place.
type saidError struct{ text string }

func (e *saidError) Error() string { return e.text }

// lastWords keeps the beginning of what is written, and accepts everything.
type lastWords struct{ bytes.Buffer }

func (l *lastWords) Write(b []byte) (int, error) {
	if room := maxLine - l.Len(); room > 0 {
		l.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// answers passes the program's output on. If the program can't be started, the
// engine writes a message there instead.
type answers struct {
	w       io.Writer
	problem io.Writer
	mine    func(first byte) bool
	begun   bool
}

func (a *answers) Write(b []byte) (int, error) {
	if !a.begun && len(b) > 0 && !a.mine(b[0]) {
		return a.problem.Write(b)
	}
	a.begun = true
	return a.w.Write(b)
}

// execConn is a connection to a program in a container.
type execConn struct {
	io.Reader
	io.Writer
	detach func() // detaches it from the context
	close  func() error
	cut    func() // ends it, as the program's end does
}

// Close ends the connection, and so the program.
func (c *execConn) Close() error { return c.close() }
