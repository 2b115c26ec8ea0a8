package wire

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// socketpair gives two ends of a connected unix socket.
func socketpair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	end := func(fd int) net.Conn {
		syscall.CloseOnExec(fd)
		_ = syscall.SetNonblock(fd, true)
		f := os.NewFile(uintptr(fd), "socketpair")
		defer f.Close()
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	return end(fds[0]), end(fds[1])
}

// serve starts a server and a client for it.
func serve(t testing.TB, h Handler) *Conn {
	t.Helper()
	a, b := socketpair(t)
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), b, h) }()
	c := NewClient(a)
	t.Cleanup(func() {
		c.Close()
		<-served
	})
	return c
}

// text is a call's parameters or result with one string.
type text struct {
	Text string `json:"text"`
}

func answering(size int) Handler {
	s := text{strings.Repeat("a line of a program's output\n", size/29+1)[:size]}
	return func(context.Context, *Incoming) (any, error) { return s, nil }
}

func benchmarkCall(b *testing.B, size, parallel int) {
	c := serve(b, answering(size))
	b.SetBytes(int64(size))
	b.ReportAllocs()
	if parallel > 1 {
		b.SetParallelism(parallel / 2) // per processor
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				var r json.RawMessage
				if err := c.Call(context.Background(), "call", text{"x"}, &r); err != nil {
					b.Error(err)
				}
			}
		})
		return
	}
	for b.Loop() {
		var r json.RawMessage
		if err := c.Call(context.Background(), "call", text{"x"}, &r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall64(b *testing.B)         { benchmarkCall(b, 64, 1) }
func BenchmarkCall16K(b *testing.B)        { benchmarkCall(b, 16<<10, 1) }
func BenchmarkCall1M(b *testing.B)         { benchmarkCall(b, 1<<20, 1) }
func BenchmarkCall64Parallel(b *testing.B) { benchmarkCall(b, 64, 8) }

// benchmarkFloor is a socketpair and two goroutines without a protocol.
func benchmarkFloor(b *testing.B, size int) {
	x, y := socketpair(b)
	go func() {
		p := make([]byte, size)
		for {
			if _, err := io.ReadFull(y, p[:64]); err != nil {
				return
			}
			_, _ = y.Write(p)
		}
	}()
	p := make([]byte, size)
	b.SetBytes(int64(size))
	for b.Loop() {
		_, _ = x.Write(p[:64])
		if _, err := io.ReadFull(x, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFloor64(b *testing.B)  { benchmarkFloor(b, 64) }
func BenchmarkFloor16K(b *testing.B) { benchmarkFloor(b, 16<<10) }
func BenchmarkFloor1M(b *testing.B)  { benchmarkFloor(b, 1<<20) }

// BenchmarkJSON is what encoding and decoding of the same results alone costs.
func BenchmarkJSON16K(b *testing.B) { benchmarkJSON(b, 16<<10) }
func BenchmarkJSON1M(b *testing.B)  { benchmarkJSON(b, 1<<20) }

func benchmarkJSON(b *testing.B, size int) {
	v, _ := answering(size)(context.Background(), nil)
	b.SetBytes(int64(size))
	for b.Loop() {
		p, err := json.Marshal(v)
		if err != nil || !json.Valid(p) {
			b.Fatal(err)
		}
	}
}

func BenchmarkStream64M(b *testing.B) {
	const size = 64 << 20
	c := serve(b, func(_ context.Context, in *Incoming) (any, error) {
		p := make([]byte, 64<<10)
		out := in.Stream(Stdout)
		for n := 0; n < size; n += len(p) {
			if _, err := out.Write(p); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	p := make([]byte, 64<<10)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		o, err := c.Start(context.Background(), "exec", nil)
		if err != nil {
			b.Fatal(err)
		}
		n, out := 0, o.Stream(Stdout)
		for {
			k, err := out.Read(p)
			if n += k; err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		if err := o.Wait(nil); err != nil || n != size {
			b.Fatal(n, err)
		}
	}
}
