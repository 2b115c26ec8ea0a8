package toolbox

import (
	"context"
	"io"
	"net"
	"strconv"

	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// connect carries a TCP connection to a server on the loopback of the worker's own network.
func (s *session) connect(ctx context.Context, c *wire.Incoming) (any, error) {
	var to Connect
	if err := decode(c.Params, &to); err != nil {
		return nil, err
	}
	if to.Port == 0 {
		return nil, invalid([]string{"port is 0"})
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(to.Port))))
	if err != nil {
		return nil, toolError(ctx, err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	in, out := c.Stream(wire.Stdin), c.Stream(wire.Stdout)
	go func() {
		if _, err := io.Copy(nc, in); err != nil {
			nc.Close() // nobody reads what is sent: the server is gone
			return
		}
		_ = nc.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(out, nc); err != nil {
		return nil, toolError(ctx, err)
	}
	return struct{}{}, nil
}
