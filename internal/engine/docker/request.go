package docker

import (
	"bufio"
	"context"
	"io"
	"net/http"
)

// request makes one request on a connection of its own, by a path as it is: without an API
// version, which the client would have to negotiate first, or of another API than Docker's.
// Half of a client's time is spent on reuse. read gets the response.
func (e *Engine) request(ctx context.Context, method, path string, read func(*http.Response) error) error {
	conn, err := e.cli.Dialer()(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, method+" "+path+" HTTP/1.1\r\nHost: docker\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return read(resp)
}
