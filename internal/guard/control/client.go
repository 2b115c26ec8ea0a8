package control

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

// Do sends one request and reads its answer into result. An error of the guard
// is of type *[RefusedError].
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
	line, err := readLine(c.r)
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

// RefusedError is what the guard says against a request.
type RefusedError struct{ Message string }

func (e *RefusedError) Error() string { return "the guard refuses: " + e.Message }

// readLine reads one line of at most MaxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var out []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(out)+len(part) > MaxLine {
			return nil, errors.New("a line is too long")
		}
		out = append(out, part...)
		switch {
		case err == nil:
			return bytes.TrimRight(out, "\n"), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(out) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}
