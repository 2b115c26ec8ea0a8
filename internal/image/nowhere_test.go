package image

import (
	"context"
	"errors"
	"io"
)

// nowhere has no blobs.
type nowhere struct{}

func (nowhere) manifest(context.Context, descriptor) (io.ReadCloser, error) {
	return nil, errors.New("none")
}

func (nowhere) blob(context.Context, descriptor) (io.ReadCloser, error) {
	return nil, errors.New("none")
}
