package terminal

import (
	"context"
	"errors"

	"golang.org/x/term"
)

// ReadSecret reads a line from a terminal, see [Is], that doesn't show what is typed. Where
// ctx ends first, the terminal shows it again, and the error is the cause.
func ReadSecret(ctx context.Context, in any) ([]byte, error) {
	fd := int(in.(fileDescriptor).Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), term.Restore(fd, before))
	case l := <-read:
		return l.text, l.err
	}
}
