//go:build !linux

package image

import (
	"context"

	"github.com/llmdo/workshop/internal/image/reference"
)

// Store is a directory of unpacked images.
type Store struct{}

// Open returns [ErrUnsupported].
func Open(string, Options) (*Store, error) { return nil, ErrUnsupported }

// Lookup returns [ErrUnsupported].
func (*Store) Lookup(context.Context, reference.Ref) (*Image, error) { return nil, ErrUnsupported }

// Get returns [ErrUnsupported].
func (*Store) Get(context.Context, reference.Ref, Policy, Progress) (*Image, error) {
	return nil, ErrUnsupported
}

// List returns [ErrUnsupported].
func (*Store) List() ([]Image, error) { return nil, ErrUnsupported }

// Remove returns [ErrUnsupported].
func (*Store) Remove(context.Context, string) error { return ErrUnsupported }
