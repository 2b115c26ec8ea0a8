package session

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// What a worker at its limits can't say, the host says for it, and without the
// names of sockets.
func TestHelloErrorNamesTheLimit(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "unix", Source: &net.UnixAddr{Name: "/proc/self/fd/8/NAME.new"}, Err: syscall.ECONNRESET}
	for _, cause := range []error{reset, io.ErrUnexpectedEOF} {
		text := helloError(&wire.LostError{Cause: cause}).Error()
		if !strings.Contains(text, "resources.pids") || strings.Contains(text, "/proc/self") {
			t.Errorf("%v: %s", cause, text)
		}
	}
	if other := errors.New("wrong version"); helloError(other) != other {
		t.Error("an answer of the toolbox is changed")
	}
}
