package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// ErrNone means that the directory has no live supervisor: nothing of the project
// runs.
var ErrNone = errors.New("the workshop isn't running: it has no supervisor")

// maxAnswer bounds a response in bytes.
const maxAnswer = 64 << 20

// Client calls one supervisor. Each call has its own connection, so calls may be
// concurrent, and cancelling one doesn't affect others. Errors of the supervisor are
// of type *[api.Error]; without a live supervisor the error is [ErrNone].
type Client struct{ dir string }

// Dial finds the supervisor of a state directory. It waits for one that is starting
// or ending, until ctx ends.
func Dial(ctx context.Context, dir string) (*Client, error) {
	c := &Client{dir: dir}
	for {
		conn, err := Connect(ctx, c.dir)
		if err == nil {
			conn.Close()
			return c, nil
		}
		if !errors.Is(err, ErrNone) {
			return nil, err
		}
		lives, err := Lives(dir)
		if err != nil {
			return nil, err
		}
		if !lives {
			return nil, ErrNone
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the supervisor in %s is alive but doesn't respond: %w", dir, context.Cause(ctx))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Lives reports whether a supervisor holds the lock of a state directory.
func Lives(dir string) (bool, error) {
	f, err := os.OpenFile(dir+"/"+api.LockName, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return false, nil
}

// FormError means that a state file was written by a program with another version of
// specs.
type FormError struct{ Have int }

func (e *FormError) Error() string {
	return fmt.Sprintf("written by another version of workshop: state format %d, want %d", e.Have, spec.Version)
}

// State reads the state file of a directory. Without a live supervisor nothing in
// it runs. A project that never ran has no containers. With a [FormError] it returns
// what it understands.
func State(dir string) (*api.File, error) {
	b, err := os.ReadFile(dir + "/" + api.StateName)
	if errors.Is(err, fs.ErrNotExist) {
		return &api.File{Version: spec.Version}, nil
	}
	if err != nil {
		return nil, err
	}
	var f api.File
	err = json.Unmarshal(b, &f)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); (err == nil || other) && f.Version != spec.Version {
		return &f, &FormError{Have: f.Version}
	}
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// Connect connects to the supervisor of a state directory by a descriptor of the
// directory, because the path may be longer than the address of a socket (108
// bytes).
func Connect(ctx context.Context, dir string) (*net.UnixConn, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Uid != uint32(os.Geteuid()) {
		return nil, errors.Join(err, fmt.Errorf("%s is another user's: set XDG_STATE_HOME to your own directory", dir))
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(fd)+"/"+api.SocketName)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return nil, ErrNone
	case err != nil:
		return nil, fmt.Errorf("the supervisor in %s: %w", dir, err)
	}
	return conn.(*net.UnixConn), nil
}

// call sends one request and reads its response. The file is nil if the response has
// none.
func (c *Client) call(ctx context.Context, r api.Request) (*api.Answer, *os.File, error) {
	b, err := json.Marshal(&r)
	if err != nil {
		return nil, nil, err
	}
	return c.send(ctx, r.Service, b)
}

// send is call with the JSON of a request.
func (c *Client) send(ctx context.Context, service string, b []byte) (*api.Answer, *os.File, error) {
	if len(b) >= api.MaxRequest {
		return nil, nil, fmt.Errorf("service %s: a request of %d bytes is too large for the supervisor", service, len(b))
	}
	conn, err := Connect(ctx, c.dir)
	if err != nil {
		return nil, nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	a, f, err := exchange(conn, append(b, '\n'))
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		return nil, nil, fmt.Errorf("the supervisor in %s doesn't respond (its output is in %s): %w", c.dir, api.ErrorsName, err)
	case a.Error != nil:
		if f != nil {
			f.Close()
		}
		return nil, nil, a.Error
	case a.FD != (f != nil):
		if f != nil {
			f.Close()
		}
		return nil, nil, errors.New("the supervisor's response doesn't match its descriptor")
	}
	return a, f, nil
}

func exchange(conn *net.UnixConn, request []byte) (*api.Answer, *os.File, error) {
	if _, err := conn.Write(request); err != nil {
		return nil, nil, err
	}
	var line []byte
	var file *os.File
	fail := func(err error) (*api.Answer, *os.File, error) {
		if file != nil {
			file.Close()
		}
		return nil, nil, err
	}
	buf, oob := make([]byte, 32<<10), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := conn.ReadMsgUnix(buf, oob)
		if f := descriptor(oob[:oobn]); f != nil {
			if file != nil {
				file.Close()
			}
			file = f
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fail(err)
		}
		if line = append(line, buf[:n]...); len(line) > maxAnswer {
			return fail(errors.New("the response is too long"))
		}
		if line[len(line)-1] == '\n' {
			break
		}
	}
	d := json.NewDecoder(bytes.NewReader(line))
	var a api.Answer
	if err := d.Decode(&a); err != nil {
		return fail(err)
	}
	return &a, file, nil
}

// descriptor returns the descriptor of a message, with close-on-exec.
func descriptor(oob []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err == nil && len(fds) == 1 {
			return os.NewFile(uintptr(fds[0]), "descriptor")
		}
	}
	return nil
}
