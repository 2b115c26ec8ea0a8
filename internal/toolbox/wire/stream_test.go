package wire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStreams: what is written comes out, in order, whatever the sizes, and
// the answer stands behind it.
func TestStreams(t *testing.T) {
	c := serve(t, methods)
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Add(1)
		go func() {
			defer calls.Done()
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			o, err := c.Start(background, "cat", nil)
			if err != nil {
				t.Error(err)
				return
			}
			sent, got := sha256.New(), sha256.New()
			size := 0
			go func() {
				in := o.Stream(Stdin)
				for range 60 {
					p := make([]byte, rnd.IntN(200<<(5*rnd.IntN(3))))
					for i := range p {
						p[i] = byte(rnd.Uint32())
					}
					sent.Write(p)
					size += len(p)
					if n, err := in.Write(p); n != len(p) || err != nil {
						t.Errorf("write: %d of %d, %v", n, len(p), err)
					}
				}
				_ = in.Close()
			}()
			if _, err := io.Copy(got, o.Stream(Stdout)); err != nil {
				t.Error(err)
			}
			var n int
			if err := o.Wait(&n); err != nil || n != size || !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
				t.Errorf("%d bytes of %d, %v", n, size, err)
			}
		}()
	}
	within(t, "a stream", calls.Wait)
}

// TestAnswerBehindData: a handler that writes and returns loses nothing, and
// its streams end where it left them open.
func TestAnswerBehindData(t *testing.T) {
	c := serve(t, func(_ context.Context, in *Incoming) (any, error) {
		p := bytes.Repeat([]byte("x"), Window)
		_, err := in.Stream(Stderr).Write(p)
		_, err2 := in.Stream(Stdout).Write(p)
		return nil, errors.Join(err, err2)
	})
	for range 50 {
		o, err := c.Start(background, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "Wait", func() { err = o.Wait(nil) })
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []byte{Stdout, Stderr} {
			if b, err := io.ReadAll(o.Stream(n)); len(b) != Window || err != nil {
				t.Fatalf("stream %d: %d bytes, %v", n, len(b), err)
			}
		}
		if _, err := o.Stream(Stdin).Write([]byte("x")); err != ErrCallEnded {
			t.Fatalf("a write after the end: %v", err)
		}
		if err := o.Notify("$/signal", nil); err != ErrCallEnded {
			t.Fatalf("a notification after the end: %v", err)
		}
	}
}

// TestSlowReader: a stream that nobody reads stops itself: others and calls go
// on, and neither side keeps more than the window.
func TestSlowReader(t *testing.T) {
	c := serve(t, methods)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var stuck []*Outgoing
	for range 16 {
		o, err := c.Start(ctx, "yes", nil)
		if err != nil {
			t.Fatal(err)
		}
		o.Stream(Stdout)
		stuck = append(stuck, o)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 200 {
		if err := c.Call(background, "echo", text{"x"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	o, err := c.Start(background, "yes", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, o.Stream(Stdout), 64<<20); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16*Window+(4<<20) {
		t.Errorf("%d bytes more are kept", grown)
	}
	// They go on when they are read.
	for _, o := range stuck {
		if _, err := io.CopyN(io.Discard, o.Stream(Stdout), 2*Window); err != nil {
			t.Fatal(err)
		}
	}
	// An output that isn't wanted is thrown away, and holds up nothing.
	_ = stuck[0].Stream(Stdout).Close()
	if _, err := stuck[0].Stream(Stdout).Read(make([]byte, 1)); err != io.ErrClosedPipe {
		t.Errorf("read of a closed stream: %v", err)
	}
}

// TestClosedOutput: a call whose output isn't wanted comes to its end.
func TestClosedOutput(t *testing.T) {
	c := serve(t, func(_ context.Context, in *Incoming) (any, error) {
		out := in.Stream(Stdout)
		for range 64 {
			if _, err := out.Write(make([]byte, MaxData)); err != nil {
				return nil, err
			}
		}
		_ = out.Close()
		_, err := out.Write([]byte("x"))
		if err != io.ErrClosedPipe {
			t.Errorf("write to a closed stream: %v", err)
		}
		return nil, nil
	})
	o, err := c.Start(background, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = o.Stream(Stdout).Close()
	within(t, "Wait", func() { err = o.Wait(nil) })
	if err != nil {
		t.Error(err)
	}
}

// TestNotReading: a client that reads nothing stops only itself: handlers wait
// in Write, memory doesn't grow, and its next calls aren't even read.
func TestNotReading(t *testing.T) {
	started := make(chan struct{}, MaxInFlight)
	h := func(ctx context.Context, in *Incoming) (any, error) {
		started <- struct{}{}
		return methods(ctx, in)
	}
	p, served := rawClient(t, h)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range MaxInFlight {
		p.send(request(i+1, "yes", "{}"))
	}
	for range MaxInFlight {
		<-started
	}
	time.Sleep(50 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > MaxInFlight*(64<<10)+(4<<20) {
		t.Errorf("%d bytes more are kept", grown)
	}
	flood := make(chan int)
	go func() {
		defer close(flood)
		for i := range 1_000_000 {
			if _, err := p.Write(request(MaxInFlight+1+i, "echo", "{}")); err != nil {
				return
			}
		}
		t.Error("the flood wasn't held up")
	}()
	time.Sleep(200 * time.Millisecond)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > MaxInFlight*(64<<10)+(4<<20) {
		t.Errorf("%d bytes more are kept", grown)
	}
	_ = p.Close()
	_ = wait(t, served)
	<-flood
}

// TestPriority: while a stream floods, a message waits for one frame at most.
func TestPriority(t *testing.T) {
	var o outbox
	o.init(nil)
	o.busy = true // somebody writes
	for range dataBuffers {
		o.push(frame{b: make([]byte, MaxData), kind: frameData}, true)
	}
	o.push(frame{b: []byte("message")}, false)
	o.busy = false
	if b := o.next(); string(b) != "message" {
		t.Errorf("%d bytes came first", len(b))
	}
	if b := o.next(); len(b) != MaxData {
		t.Errorf("%d bytes came in one write", len(b))
	}
}

// TestNotifications go both ways, and are dropped from the oldest on where
// nobody takes them.
func TestNotifications(t *testing.T) {
	p := make(chan struct{})
	c := serve(t, func(_ context.Context, in *Incoming) (any, error) {
		n := <-in.Notified()
		for i := range 3 * maxNotes {
			if err := in.Notify("$/progress", map[string]any{"n": i, "got": n.Params}); err != nil {
				return nil, err
			}
		}
		if err := in.Notify("$/progress", map[string]any{"x": strings.Repeat("x", MaxNotification)}); err == nil {
			t.Error("a large notification was sent")
		}
		close(p)
		return nil, nil
	})
	o, err := c.Start(background, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]any{"signal": "TERM"}
	if err := o.Notify("$/signal", params); err != nil {
		t.Fatal(err)
	}
	if len(params) != 1 {
		t.Errorf("the caller's map was changed: %v", params)
	}
	<-p
	if err := o.Wait(nil); err != nil {
		t.Fatal(err)
	}
	var last Notification
	n := 0
	for last = range o.Notified() {
		n++
	}
	if want := `{"got":{"id":1,"signal":"TERM"},"id":1,"n":47}`; n != maxNotes || string(last.Params) != want || last.Method != "$/progress" {
		t.Errorf("%d came, the last %s %s", n, last.Method, last.Params)
	}
}

// TestClaims: a length field alone costs no memory.
func TestClaims(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		p, served := rawClient(t, methods)
		p.send(header(kindMessage, MaxMessage), make([]byte, 100))
		_ = p.Close()
		if err := wait(t, served); err == nil || !strings.Contains(err.Error(), "inside a frame") {
			t.Errorf("Serve: %v", err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / 64; n > 4*step {
		t.Errorf("%d bytes for a message of which 100 came", n)
	}
}

// TestHeldArguments: the arguments of calls under way are bounded together.
func TestHeldArguments(t *testing.T) {
	c := serve(t, methods)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	large := text{strings.Repeat("x", MaxMessage-1000)}
	for i := range maxHeld/MaxMessage + 1 {
		if i < maxHeld/MaxMessage {
			if _, err := c.Start(ctx, "hang", large); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e *Error
		if err := c.Call(ctx, "hang", large, nil); !errors.As(err, &e) || e.Code != CodeBusy {
			t.Errorf("arguments too large together: %v", err)
		}
	}
	if err := c.Call(ctx, "echo", text{"x"}, nil); err != nil {
		t.Error(err)
	}
}

// TestFrames is the form of frames as doc.go says it.
func TestFrames(t *testing.T) {
	if got, want := data(0x01020304, Stderr, "ab"), "\x01\x00\x00\x00\x07\x01\x02\x03\x04\x02ab"; string(got) != want {
		t.Errorf("data: %q", got)
	}
	if got, want := creditFrame(5, Stdin, 0x10000), "\x02\x00\x00\x00\x09\x00\x00\x00\x05\x00\x00\x01\x00\x00"; string(got) != want {
		t.Errorf("credit: %q", got)
	}
	c, p := rawServer(t)
	go c.Call(background, "hello", text{"<&>"}, nil) //nolint:errcheck // the connection ends
	kind, body, err := p.frame()
	if want := `{"jsonrpc":"2.0","method":"hello","params":{"text":"<&>"},"id":1}`; kind != kindMessage || string(body) != want || err != nil {
		t.Errorf("request: %d %s %v", kind, body, err)
	}
	r, served := rawClient(t, methods)
	r.send(request(3, "echo", "[1]"))
	_, body, _ = r.frame()
	if want := `{"jsonrpc":"2.0","id":3,"result":[1]}`; string(body) != want {
		t.Errorf("answer: %s", body)
	}
	r.send(request(4, "cat", "[]"), data(4, Stdin, "abc"), data(4, Stdin, ""))
	kind, body, _ = r.frame()
	if kind != kindData || string(body) != "\x00\x00\x00\x04\x01abc" {
		t.Errorf("data: %d %q", kind, body)
	}
	_, body, _ = r.frame()
	if want := `{"jsonrpc":"2.0","id":4,"result":3}`; string(body) != want {
		t.Errorf("answer: %s", body)
	}
	// Credit comes back as it is consumed.
	r.send(request(5, "cat", "[]"), creditNothing(5, giveBack))
	for {
		kind, body, err := r.frame()
		if err != nil {
			t.Fatal(err)
		}
		if kind == kindCredit {
			if n := binary.BigEndian.Uint32(body[5:]); n < giveBack || body[4] != Stdin {
				t.Errorf("credit: %q", body)
			}
			break
		}
	}
	_ = r.Close()
	_ = wait(t, served)
}

// creditNothing is n bytes of stdin.
func creditNothing(id uint32, n int) []byte { return data(id, Stdin, strings.Repeat("x", n)) }
