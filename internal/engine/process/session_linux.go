package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/toolbox/client"
	"github.com/llmdo/workshop/internal/toolbox/process"
)

// Session starts a session of a worker. The session and all its processes end with
// the connection.
func (e *Engine) Session(ctx context.Context, project, service, dir string) (io.ReadWriteCloser, error) {
	c, err := e.worker(project, service, dir)
	if err != nil {
		return nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	w, err := e.readWorker(project, c.ID)
	if err != nil {
		return nil, fmt.Errorf("description of %s: %w: run `workshop up`", service, err)
	}
	w.Spec.Instance = fmt.Sprintf("%s.%d", c.ID, c.Started.UnixNano())
	spec, err := specFile(&w.Spec)
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	program, err := e.program()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	given := []*os.File{spec, program} // descriptors from 3 on
	sources, err := openSources(w.Spec.Mounts)
	defer func() {
		for _, f := range sources {
			f.Close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: run `workshop up`", service, err)
	}
	given = append(given, sources...)
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	conn := &sessionConn{File: ours, ended: make(chan struct{})}
	cmd := exec.Command(fmt.Sprintf("/proc/self/fd/%d", process.ProgramFD))
	cmd.Args = []string{"workshop-init", "tools", "--process", "keep"}
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, &conn.said
	cmd.ExtraFiles = given
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		if w.UID == 0 || w.GID == 0 {
			ours.Close()
			return nil, &engine.RefusedError{Promise: "B4", Reason: service + " would run as root on this machine", Do: "run `workshop up`"}
		}
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(w.UID), Gid: uint32(w.GID)} // without groups
	}
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, fmt.Errorf("a session of %s can't be started: %w", service, err)
	}
	go func() {
		_ = cmd.Wait()
		close(conn.ended)
	}()
	return conn, nil
}

// openSources opens the sources of mounts. A symbolic link in a path is an error:
// there was none when the worker was created.
func openSources(mounts []process.Mount) (list []*os.File, err error) {
	for _, m := range mounts {
		fd, err := unix.Openat2(unix.AT_FDCWD, m.Source, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return list, fmt.Errorf("the source %s of %s: %w", m.Source, m.Target, err)
		}
		list = append(list, os.NewFile(uintptr(fd), m.Source))
	}
	return list, nil
}

// specFile returns the spec as a file in memory, so that no command line shows it.
func specFile(s *process.Spec) (*os.File, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "spec")
	_, err = f.Write(b)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func socketPair() (ours, theirs *os.File, err error) {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(p[0], true); err != nil { // so that Close ends a Read
		_ = unix.Close(p[0])
		_ = unix.Close(p[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(p[0]), "session"), os.NewFile(uintptr(p[1]), "session"), nil
}

// sessionConn is the connection to a session. If the session couldn't begin, the
// error is its stderr.
type sessionConn struct {
	*os.File
	said  lastWords
	ended chan struct{}
	began bool
}

func (c *sessionConn) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	// A reset is an end too: the peer hasn't read everything it was sent.
	if c.began = c.began || n > 0; !c.began && (err == io.EOF || errors.Is(err, syscall.ECONNRESET)) {
		<-c.ended
		if text := c.said.String(); text != "" {
			err = errors.New(text)
		}
	}
	return n, err
}

// lastWords keeps the beginning of a program's stderr.
type lastWords struct {
	mu sync.Mutex
	b  bytes.Buffer
}

const maxWords = 4 << 10

func (l *lastWords) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(b[:min(len(b), maxWords-l.b.Len())])
	return len(b), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _, _ := strings.Cut(l.b.String(), "\n")
	return strings.TrimPrefix(line, "workshop-init: error: tools: ")
}

// Exec runs a command in its own session, which ends what the command leaves behind.
func (e *Engine) Exec(ctx context.Context, project, service string, o engine.ExecOptions) (int, error) {
	if o.User != "" {
		return 0, &engine.RefusedError{Promise: "B4", Reason: "in process mode there is no other user than the worker's", Do: "omit --user"}
	}
	conn, err := e.Session(ctx, project, service, o.Directory)
	if err != nil {
		return 0, err
	}
	return client.Exec(ctx, conn, o.ToolboxCommand())
}

// CopyTo extracts a tar stream into a directory of a worker, as its user.
func (e *Engine) CopyTo(ctx context.Context, project, service, dir string, tar io.Reader) error {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return err
	}
	return client.CopyTo(ctx, conn, dir, tar)
}

// CopyFrom returns a tar stream of a file or directory of a worker.
func (e *Engine) CopyFrom(ctx context.Context, project, service, path string) (io.ReadCloser, error) {
	conn, err := e.Session(ctx, project, service, "")
	if err != nil {
		return nil, err
	}
	return client.CopyFrom(ctx, conn, path)
}
