//go:build !linux

package dialin

import (
	"context"
	"errors"
	"net"
)

// Accept needs the worker's kernel to be this machine's; sessions go another
// way.
func Accept(ctx context.Context, dir string, pid int) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Listen needs it, too.
func Listen(dir, name string) (net.Listener, error) { return nil, errors.ErrUnsupported }
