package session

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"
)

// cutter ends a connection after so many bytes in one direction.
type cutter struct {
	io.ReadWriteCloser
	mu   sync.Mutex
	left int
	out  bool // counts what is written
}

var errCut = errors.New("cut")

func (c *cutter) take(n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n >= c.left {
		n, c.left = c.left, 0
		return n, true
	}
	c.left -= n
	return n, false
}

func (c *cutter) Write(b []byte) (int, error) {
	if !c.out {
		return c.ReadWriteCloser.Write(b)
	}
	n, cut := c.take(len(b))
	n, err := c.ReadWriteCloser.Write(b[:n])
	if cut && err == nil {
		time.AfterFunc(2*time.Millisecond, func() { c.Close() }) // the error of the write comes first
		err = errCut
	}
	return n, err
}

func (c *cutter) Read(b []byte) (int, error) {
	if c.out {
		return c.ReadWriteCloser.Read(b)
	}
	c.mu.Lock()
	left := c.left
	c.mu.Unlock()
	if left == 0 {
		c.Close()
		return 0, errCut
	}
	n, err := c.ReadWriteCloser.Read(b[:min(len(b), left)])
	c.take(n)
	return n, err
}

// A connection that is cut at every third byte of the exchange (the shortest of
// its numbers has four): what a command appends
// stands there at most once, and exactly once where the call has an answer or
// nothing was said of a loss.
func TestAtMostOnceWhereverTheConnectionIsCut(t *testing.T) {
	ws := aWorkshop(t, "", "w", "allowed-tools: Bash")
	w := startWorker(t, grantOf(ws, "w"))
	for _, out := range []bool{true, false} {
		lost, answered := 0, 0
		for at := 0; ; at += 3 {
			first := true
			reached := false
			var c *cutter
			w.wrap = func(rwc io.ReadWriteCloser) io.ReadWriteCloser {
				if !first {
					return rwc
				}
				first = false
				c = &cutter{ReadWriteCloser: rwc, left: at, out: out}
				return c
			}
			h := openHost(t, Config{Workshop: ws, Dial: w.dial}, "w")
			name := "f" + itoa(at)
			if out {
				name += "out"
			}
			r, err := h.Call(context.Background(), "shell", args("command", "echo x >> "+name), Options{})
			h.Close()
			c.mu.Lock()
			reached = c.left == 0
			c.mu.Unlock()
			got := w.file(name)
			var gone *LostError
			switch {
			case err == nil && !r.Failed:
				answered++
				if got != "x\n" {
					t.Errorf("cut at byte %d: there is an answer, executed: %q", at, got)
				}
			case errors.As(err, &gone):
				lost++
				w.settle(name)
				if got := w.file(name); got != "" && got != "x\n" {
					t.Errorf("cut at byte %d: executed: %q", at, got)
				}
			case err != nil && isUnreachable(err):
				if got != "" {
					t.Errorf("cut at byte %d, before the call: executed: %q", at, got)
				}
			default:
				t.Errorf("cut at byte %d: %v, %v", at, r, err)
			}
			if !reached {
				break
			}
		}
		// Of what is sent, only a cut behind the last byte can lose a call; where
		// the answer is quicker than the cut, none does.
		if lost == 0 && !out || answered == 0 {
			t.Errorf("out %v: %d lost, %d answered", out, lost, answered)
		}
		t.Logf("out %v: %d calls lost, %d answered", out, lost, answered)
	}
}
