package docker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/client"
)

// maxHead bounds the head of a response, in bytes, and maxMessage the message of an error.
const (
	maxHead    = 64 << 10
	maxMessage = 64 << 10
)

// upgradeTime bounds how long an engine may take to begin a stream: podman makes the
// container's files before.
const upgradeTime = time.Minute

// exchange is a request on a connection of its own, and the head of its response.
type exchange struct {
	conn net.Conn
	r    *bufio.Reader // of what follows
	resp *http.Response
}

// send makes one request on a connection of its own, by a path as it is: without an API
// version, which the client would have to negotiate first, or of another API than Docker's.
// Half of a client's time is spent on reuse. The end of ctx closes the connection until
// send has returned.
func (e *Engine) send(ctx context.Context, req *http.Request) (*exchange, error) {
	conn, err := e.cli.Dialer()(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	head := &io.LimitedReader{R: conn, N: maxHead}
	x := &exchange{conn: conn, r: bufio.NewReaderSize(head, 64<<10)}
	if err = req.Write(conn); err == nil {
		x.resp, err = http.ReadResponse(x.r, req)
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		if head.N == 0 {
			err = errLongHead
		}
		return nil, err
	}
	head.N = math.MaxInt64
	return x, nil
}

// newRequest is a request by a path of the engine.
func (e *Engine) newRequest(method, path string, body []byte) (*http.Request, error) {
	host, base := "docker", ""
	if u, err := client.ParseHostURL(e.endpoint.host); err == nil && u.Scheme == "tcp" {
		host, base = u.Host, strings.TrimSuffix(u.Path, "/")
	}
	return http.NewRequest(method, "http://"+host+base+path, bytes.NewReader(body))
}

// request asks the engine for something short. read gets the response. Together they have
// the time of [answerTime].
func (e *Engine) request(ctx context.Context, method, path string, read func(*http.Response) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errSilent)
	defer cancel()
	req, err := e.newRequest(method, path, nil)
	if err != nil {
		return err
	}
	req.Close = true
	x, err := e.send(ctx, req)
	if err == nil {
		defer x.conn.Close()
		defer context.AfterFunc(ctx, func() { x.conn.Close() })()
		err = read(x.resp)
	}
	if context.Cause(ctx) == errSilent {
		return e.silent()
	}
	return err
}

// upgrade makes a request that turns its connection into a stream. The client's own way
// doesn't end with ctx, and drops the message of an error (docker: client/hijack.go).
func (e *Engine) upgrade(ctx context.Context, path string, body any) (types.HijackedResponse, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, upgradeTime, errLateUpgrade)
	defer cancel()
	var none types.HijackedResponse
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return none, err
		}
	}
	req, err := e.newRequest(http.MethodPost, path, text)
	if err != nil {
		return none, err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	x, err := e.send(ctx, req)
	if err != nil {
		return none, err
	}
	if x.resp.StatusCode == http.StatusSwitchingProtocols {
		return types.HijackedResponse{Conn: x.conn, Reader: x.r}, nil
	}
	defer x.conn.Close()
	defer context.AfterFunc(ctx, func() { x.conn.Close() })()
	return none, messageOf(x.resp)
}

// messageOf is the error of a response that isn't a stream.
func messageOf(resp *http.Response) error {
	var body struct {
		Message string `json:"message"`
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage))
	if json.Unmarshal(text, &body) == nil && body.Message != "" {
		return errors.New(body.Message)
	}
	return fmt.Errorf("the engine answers %s in place of a stream", resp.Status)
}
