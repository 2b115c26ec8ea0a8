package toolbox

import (
	"context"
	"errors"
	"io"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/toolbox/files"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// archiveOut sends a file or directory as a tar stream.
func (s *session) archiveOut(ctx context.Context, c *wire.Incoming) (any, error) {
	var a ArchiveOut
	if err := decode(c.Params, &a); err != nil {
		return nil, err
	}
	if err := s.inWorkdir(a.Path); err != nil {
		return nil, err
	}
	if err := files.Pack(ctx, c.Stream(wire.Stdout), a.Path); err != nil {
		return nil, archiveError(ctx, err)
	}
	return struct{}{}, nil
}

// archiveIn unpacks a tar stream in a directory.
func (s *session) archiveIn(ctx context.Context, c *wire.Incoming) (any, error) {
	var a ArchiveIn
	if err := decode(c.Params, &a); err != nil {
		return nil, err
	}
	if err := s.inWorkdir(a.Dir); err != nil {
		return nil, err
	}
	in := c.Stream(wire.Stdin)
	if err := files.Unpack(ctx, in, a.Dir); err != nil {
		return nil, archiveError(ctx, err)
	}
	_, _ = io.Copy(io.Discard, in) // trailing data of an archive
	return struct{}{}, nil
}

func archiveError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return toolError(ctx, ctx.Err())
	case errors.Is(err, unix.ENOENT):
		return &wire.Error{Code: wire.CodeNotFound, Message: err.Error()}
	}
	return toolError(ctx, err)
}
