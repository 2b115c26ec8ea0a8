package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var background = context.Background()

// both joins two pipes, as an engine gives them to a process.
type both struct{ in, out *os.File }

func (b both) Read(p []byte) (int, error)  { return b.in.Read(p) }
func (b both) Write(p []byte) (int, error) { return b.out.Write(p) }
func (b both) Close() error                { b.out.Close(); return b.in.Close() }

func TestCall(t *testing.T) {
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- Serve(background, both{r1, w2}, methods) }()
	pipes := NewClient(both{r2, w1})
	for name, c := range map[string]*Conn{"a socket": serve(t, methods), "two pipes": pipes} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{0, 1, 7, 8, 9, 1000, step, step + 1, 1 << 20, MaxMessage - 200} {
				in, out := text{strings.Repeat("é", n/2) + strings.Repeat("\n", n%2)}, text{}
				if err := c.Call(background, "echo", in, &out); err != nil || in != out {
					t.Errorf("%d bytes: %v", n, err)
				}
			}
			var e *Error
			if err := c.Call(background, "nothing", nil, nil); !errors.As(err, &e) || e.Code != CodeMethodNotFound {
				t.Errorf("an unknown method: %v", err)
			}
			if err := c.Call(background, "panic", nil, nil); !errors.As(err, &e) || e.Code != CodeInternal || !strings.Contains(e.Message, "disco") {
				t.Errorf("a panic: %v", err)
			}
			// What can't be sent ends no connection.
			for what, params := range map[string]any{
				"too large": text{strings.Repeat("x", MaxMessage)}, "too deep": json.RawMessage(deep(MaxDepth)),
				"no JSON": json.RawMessage(`{"a"`), "no UTF-8": json.RawMessage("[\"\xff\"]"), "a channel": make(chan int),
			} {
				if err := c.Call(background, "echo", params, nil); !errors.As(err, &e) || e.Code != CodeInvalidParams {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := c.Call(background, "a method", nil, nil); err == nil {
				t.Error("a method with a space was sent")
			}
			var n int
			if err := c.Call(background, "echo", text{"x"}, &n); err == nil || !strings.Contains(err.Error(), "unexpected form") {
				t.Errorf("another type of result: %v", err)
			}
			if err := c.Call(background, "echo", text{"x"}, nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
	_ = pipes.Close()
	if err := wait(t, served); err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// TestUnsendable: a handler's answer that can't be sent is an error of its
// call, and so is a handler that gives up its goroutine.
func TestUnsendable(t *testing.T) {
	c := serve(t, func(_ context.Context, in *Incoming) (any, error) {
		switch in.Method {
		case "large":
			return text{strings.Repeat("x", MaxMessage)}, nil
		case "deep":
			return json.RawMessage(deep(MaxDepth)), nil
		case "channel":
			return make(chan int), nil
		case "goexit":
			runtime.Goexit()
		case "data":
			return nil, &Error{Code: 1, Message: "x", Data: json.RawMessage("{")}
		case "long":
			return nil, errors.New(strings.Repeat("x", MaxMessage))
		case "wrapped":
			return nil, fmt.Errorf("wrapped: %w", &Error{Code: 7, Message: "seven"})
		}
		return nil, nil
	})
	for method, code := range map[string]int{
		"large": CodeInternal, "deep": CodeInternal, "channel": CodeInternal, "goexit": CodeInternal,
		"data": CodeInternal, "long": CodeInternal, "wrapped": 7,
	} {
		var e *Error
		if err := c.Call(background, method, nil, nil); !errors.As(err, &e) || e.Code != code {
			t.Errorf("%s: %v", method, err)
		}
		if err := c.Call(background, "nil", nil, nil); err != nil {
			t.Errorf("the call after %s: %v", method, err)
		}
	}
}

// TestBusy: a call too many is refused, and there is room again when one ended.
func TestBusy(t *testing.T) {
	release := make(chan struct{})
	c := serve(t, func(context.Context, *Incoming) (any, error) { <-release; return nil, nil })
	var calls []*Outgoing
	for range MaxInFlight {
		o, err := c.Start(background, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, o)
	}
	for range 3 {
		var e *Error
		if err := c.Call(background, "x", nil, nil); !errors.As(err, &e) || e.Code != CodeBusy {
			t.Errorf("a call too many: %v", err)
		}
	}
	release <- struct{}{}
	var answered *Outgoing
	within(t, "the answer", func() {
		for answered == nil {
			for _, o := range calls {
				select {
				case <-o.done:
					answered = o
				default:
				}
			}
			runtime.Gosched()
		}
	})
	// Its place is free by the time it is answered.
	o, err := c.Start(background, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	close(release)
	within(t, "Wait", func() { err = o.Wait(nil) })
	if err != nil {
		t.Errorf("the call after one ended: %v", err)
	}
}

// TestCancel: the caller returns at once; the handler is told; the server
// answers with CodeCancelled; the connection goes on.
func TestCancel(t *testing.T) {
	ended := make(chan error, 1)
	h := func(ctx context.Context, in *Incoming) (any, error) {
		r, err := methods(ctx, in)
		if in.Method == "hang" {
			ended <- context.Cause(ctx)
		}
		return r, err
	}
	c := serve(t, h)
	mine := errors.New("enough")
	ctx, cancel := context.WithCancelCause(background)
	got := make(chan error, 1)
	go func() { got <- c.Call(ctx, "hang", nil, nil) }()
	time.Sleep(10 * time.Millisecond)
	cancel(mine)
	if err := wait(t, got); err != mine {
		t.Errorf("Call: %v", err)
	}
	if err := wait(t, ended); err != ErrCancelled {
		t.Errorf("the handler's context: %v", err)
	}
	if err := c.Call(ctx, "echo", nil, nil); err != mine {
		t.Errorf("a call with an ended context: %v", err)
	}
	if err := c.Call(background, "echo", text{}, nil); err != nil {
		t.Errorf("the next call: %v", err)
	}

	p, served := rawClient(t, h)
	p.send(request(1, "hang", "{}"), msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`))
	if r := p.reply(); r.Error == nil || r.Error.Code != CodeCancelled {
		t.Errorf("the answer of a cancelled call: %+v", r)
	}
	<-ended
	p.send(request(2, "hang", "{}"))
	time.Sleep(10 * time.Millisecond)
	_ = p.Close()
	if err := wait(t, served); err != nil {
		t.Errorf("Serve: %v", err)
	}
	select {
	case err := <-ended:
		if err != ErrPeerClosed {
			t.Errorf("the handler's context: %v", err)
		}
	default:
		t.Error("Serve returned before its handler")
	}
}

// TestCancelRaces: cancels, answers and ends at the same time.
func TestCancelRaces(t *testing.T) {
	c := serve(t, methods)
	var calls sync.WaitGroup
	var answered, cancelled atomic.Int32
	for i := range 16 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			for j := range 200 {
				ctx, cancel := context.WithCancel(background)
				var err error
				switch j % 3 {
				case 0:
					go cancel()
					err = c.Call(ctx, "echo", text{strings.Repeat("x", i*j)}, nil)
				case 1:
					time.AfterFunc(time.Duration(j)*time.Microsecond, cancel)
					var o *Outgoing
					if o, err = c.Start(ctx, "yes", nil); err == nil {
						_, _ = io.Copy(io.Discard, o.Stream(Stdout))
						err = o.Wait(nil)
					}
				default:
					var o *Outgoing
					if o, err = c.Start(ctx, "cat", nil); err == nil {
						in := o.Stream(Stdin)
						_, _ = in.Write(make([]byte, j))
						go cancel()
						_ = in.Close()
						_, _ = io.Copy(io.Discard, o.Stream(Stdout))
						err = o.Wait(nil)
					}
				}
				cancel()
				var e *Error
				switch {
				case err == nil:
					answered.Add(1)
				case err == context.Canceled, errors.As(err, &e) && e.Code == CodeBusy:
					cancelled.Add(1)
				default:
					t.Errorf("%d: %v", j%3, err)
				}
			}
		}()
	}
	within(t, "a call", calls.Wait)
	t.Logf("%d answered, %d cancelled", answered.Load(), cancelled.Load())
	var busy *Error // until the handlers of cancelled calls have ended
	err := c.Call(background, "echo", text{}, nil)
	for errors.As(err, &busy) && busy.Code == CodeBusy {
		err = c.Call(background, "echo", text{}, nil)
	}
	if err != nil {
		t.Errorf("the next call: %v", err)
	}
	c.mu.Lock()
	if len(c.calls) != 0 {
		t.Errorf("%d calls are kept", len(c.calls))
	}
	c.mu.Unlock()
}
