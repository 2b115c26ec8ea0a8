package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// CopyTo unpacks a tar stream in a directory of the worker, as the worker's
// user, and never outside of that directory. A directory that isn't there is
// fs.ErrNotExist. When ctx ends or tar fails, what was made until then stays.
// conn is closed; a Read of tar that blocks is not waited for.
func CopyTo(ctx context.Context, conn io.ReadWriteCloser, dir string, tar io.Reader) error {
	client, err := greet(ctx, conn, "workshop cp")
	if err != nil {
		return err
	}
	defer client.Close()
	call, err := client.Start(ctx, "archive.in", protocol.ArchiveIn{Dir: dir})
	if err != nil {
		return err
	}
	unread := make(chan error, 1)
	go func() {
		in := call.Stream(wire.Stdin)
		source := &failing{Reader: tar}
		if _, err := io.Copy(in, source); source.err != nil {
			unread <- source.err // without an end it is not an archive
			return
		} else if err == nil {
			_ = in.Close()
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- call.Wait(nil) }()
	select {
	case err := <-unread:
		return fmt.Errorf("the tar stream: %w", err)
	case err := <-ended:
		return copyError(err)
	}
}

// failing remembers the error of a reader.
type failing struct {
	io.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}

// CopyFrom returns a tar stream of a file or directory of the worker, as far as
// the worker's user can read it; its first entry has the base name of the path,
// whose last symbolic link is not followed. What isn't there is fs.ErrNotExist.
// A read fails, instead of io.EOF, where something was left out. conn is closed by
// Close, by the end of ctx, or with an error.
func CopyFrom(ctx context.Context, conn io.ReadWriteCloser, path string) (io.ReadCloser, error) {
	client, err := greet(ctx, conn, "workshop cp")
	if err != nil {
		return nil, err
	}
	call, err := client.Start(ctx, "archive.out", protocol.ArchiveOut{Path: path})
	if err != nil {
		client.Close()
		return nil, err
	}
	c := &copyOut{client: client, call: call, r: bufio.NewReaderSize(call.Stream(wire.Stdout), 64<<10)}
	if _, err := c.r.Peek(1); err != nil { // nothing is sent before it is known to be there
		err = c.end(err)
		client.Close()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return c, nil
}

type copyOut struct {
	client *wire.Conn
	call   *wire.Outgoing
	r      *bufio.Reader
}

func (c *copyOut) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil {
		err = c.end(err)
	}
	return n, err
}

func (c *copyOut) Close() error { return c.client.Close() }

// end is the error at the end of the stream.
func (c *copyOut) end(err error) error {
	if err != io.EOF {
		return err
	}
	if err := c.call.Wait(nil); err != nil {
		return copyError(err)
	}
	return io.EOF
}

// notThere is fs.ErrNotExist in the worker's words.
type notThere struct{ said *wire.Error }

func (e notThere) Error() string { return e.said.Error() }
func (e notThere) Unwrap() error { return fs.ErrNotExist }

func copyError(err error) error {
	if refused, ok := errors.AsType[*wire.Error](err); ok && refused.Code == wire.CodeNotFound {
		return notThere{refused}
	}
	return err
}
