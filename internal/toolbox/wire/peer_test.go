package wire

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// within fails the test where f doesn't end soon.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s doesn't end", what)
	}
}

func header(kind byte, n int) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, uint32(n))
}

func msg(s string) []byte { return append(header(kindMessage, len(s)), s...) }

func request(id int, method, params string) []byte {
	return msg(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
}

func data(id uint32, stream byte, p string) []byte { return dataFrame(nil, id, stream, []byte(p)) }

// peer is one side of a connection made by hand, to do what it shouldn't.
type peer struct {
	t testing.TB
	net.Conn
}

func (p *peer) send(frames ...[]byte) {
	p.t.Helper()
	for _, f := range frames {
		if _, err := p.Write(f); err != nil {
			p.t.Fatalf("send: %v", err)
		}
	}
}

// frame reads the next frame.
func (p *peer) frame() (kind byte, body []byte, err error) {
	_ = p.SetReadDeadline(time.Now().Add(10 * time.Second))
	var h [headerSize]byte
	if _, err := io.ReadFull(p, h[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(h[1:]))
	_, err = io.ReadFull(p, body)
	return h[0], body, err
}

// reply is an answer or a notification.
type reply struct {
	ID     *uint32         `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// reply reads the next message and passes over other frames.
func (p *peer) reply() reply {
	p.t.Helper()
	for {
		kind, body, err := p.frame()
		if err != nil {
			p.t.Fatalf("no answer: %v", err)
		}
		if kind != kindMessage {
			continue
		}
		var r reply
		if err := json.Unmarshal(body, &r); err != nil {
			p.t.Fatalf("%s: %v", body, err)
		}
		return r
	}
}

// rawClient starts a server for a client made by hand.
func rawClient(t testing.TB, h Handler) (*peer, <-chan error) {
	t.Helper()
	a, b := socketpair(t)
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), b, h) }()
	return &peer{t, a}, served
}

// rawServer makes a client for a server made by hand.
func rawServer(t testing.TB) (*Conn, *peer) {
	t.Helper()
	a, b := socketpair(t)
	c := NewClient(a)
	t.Cleanup(func() { c.Close() })
	return c, &peer{t, b}
}

func wait(t testing.TB, served <-chan error) error {
	t.Helper()
	select {
	case err := <-served:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("Serve doesn't return")
		return nil
	}
}

// methods is a server that the tests call.
func methods(ctx context.Context, in *Incoming) (any, error) {
	switch in.Method {
	case "echo":
		return in.Params, nil
	case "hang":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "cat":
		out := in.Stream(Stdout)
		n, err := io.Copy(out, in.Stream(Stdin))
		return n, err
	case "yes":
		p := make([]byte, 32<<10)
		for out := in.Stream(Stdout); ; {
			if _, err := out.Write(p); err != nil {
				return nil, err
			}
		}
	case "panic":
		panic("at the disco")
	case "fail":
		return nil, errors.New("it failed")
	}
	return nil, &Error{Code: CodeMethodNotFound, Message: "unknown method"}
}
