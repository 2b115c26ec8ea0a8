package docker

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestClosedConnections: an engine that ends during a call is named; other errors stay.
func TestClosedConnections(t *testing.T) {
	e := &Engine{endpoint: endpoint{host: "unix:///run/podman/podman.sock"}}
	const want = "the engine at unix:///run/podman/podman.sock closed the connection (%v): if it has ended, start it, and run the command again"
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, fmt.Errorf("wait: %w", syscall.EPIPE),
	} {
		if got := e.explain(err); got.Error() != fmt.Sprintf(want, err) || !errors.Is(got, err) {
			t.Errorf("got %v", got)
		}
	}
	if other := errors.New("conflict"); e.explain(other) != other {
		t.Error("another error was changed")
	}
}
