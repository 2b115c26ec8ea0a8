package control

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Client is the host's side of one connection. It serves one caller at a time.
type Client struct {
	c io.ReadWriteCloser
	r *bufio.Reader
}

// NewClient takes over a connection to the guard's control socket.
func NewClient(c io.ReadWriteCloser) *Client { return &Client{c: c, r: bufio.NewReader(c)} }

// Close ends the connection.
func (c *Client) Close() error { return c.c.Close() }

// Do sends one request and decodes its response into result. A refusal by the guard
// is a *[RefusedError].
func (c *Client) Do(req Request, result any) error {
	b, err := json.Marshal(req)
	if err != nil {
		return err
	}
	if len(b) > MaxLine {
		return errTooLong
	}
	if _, err := c.c.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("the guard's control: %w", err)
	}
	line, err := readLine(c.r, func() {})
	if err != nil {
		return fmt.Errorf("the guard's control: %w", err)
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return fmt.Errorf("the guard's control: %w", err)
	}
	if a.Error != "" {
		return &RefusedError{Message: a.Error}
	}
	return json.Unmarshal(a.Result, result)
}

// Attach sends OpAttach and returns the connection for what follows; the client is not used
// any more. A refusal by the guard is a *[RefusedError].
func (c *Client) Attach() (io.ReadWriteCloser, error) {
	var a Attached
	if err := c.Do(Request{Op: OpAttach, Version: AttachVersion}, &a); err != nil {
		return nil, err
	}
	if a.Version != AttachVersion {
		return nil, fmt.Errorf("the guard's control: attached with version %d, want %d", a.Version, AttachVersion)
	}
	return struct {
		io.Reader // the guard may have sent more already
		io.WriteCloser
	}{c.r, c.c}, nil
}

// RefusedError is the guard's refusal of a request.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return "the guard refuses: " + e.Message }
