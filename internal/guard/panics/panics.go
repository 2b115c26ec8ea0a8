// Package panics recovers a panic of one connection, query or request, so that it
// doesn't end the guard for all (B60). It is a safety net below code that shouldn't
// panic: each panic is counted and logged, and too many end the process.
//
// Nothing that a panicking goroutine owned is reused: its connections are reset,
// and its buffers left to the garbage collector.
package panics

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// After Limit panics within Window the guard exits, and its engine restarts
// it.
const (
	Limit  = 10
	Window = time.Minute
)

// maxStack bounds what one panic writes to the log.
const maxStack = 8 << 10

// Go calls serve on a new goroutine. If it panics, Go calls failed, which ends what
// was served and reports it.
func Go(serve, failed func()) { go Serve(serve, failed) }

// Serve is [Go] on the caller's goroutine. It reports whether serve returned.
func Serve(serve, failed func()) bool {
	err := Try(func() error { serve(); return nil })
	if err == nil {
		return true
	}
	recovered.add(err, time.Now())
	failed()
	return false
}

// Error is a panic as an error.
type Error struct {
	Value any
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Try calls f, and returns an [*Error] if it panics. It is for a goroutine that
// does part of another's work; the other passes the error to [Again].
func Try(f func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		e, ok := v.(*Error)
		if !ok {
			stack := debug.Stack()
			e = &Error{v, stack[:min(len(stack), maxStack)]}
		}
		err = e
	}()
	return f()
}

// Again panics with an error that was a panic.
func Again(err error) {
	if e, ok := err.(*Error); ok {
		panic(e)
	}
}

// Count returns how many panics the process has recovered from.
func Count() uint64 {
	recovered.mu.Lock()
	defer recovered.mu.Unlock()
	return recovered.count
}

// TooMany returns a channel that is closed after too many panics.
func TooMany() <-chan struct{} { return recovered.tooMany }

// Err returns an error after too many panics, else nil.
func Err() error {
	select {
	case <-recovered.tooMany:
		return fmt.Errorf("recovered from %d panics within %s", Limit, Window)
	default:
		return nil
	}
}

// recovered is the log of the process.
var recovered = newLog(os.Stderr)

// log counts and writes panics.
type log struct {
	w       io.Writer
	tooMany chan struct{}

	mu     sync.Mutex
	count  uint64
	latest [Limit]time.Time // a ring
}

func newLog(w io.Writer) *log { return &log{w: w, tooMany: make(chan struct{})} }

func (l *log) add(err error, now time.Time) {
	var stack []byte
	if e, ok := err.(*Error); ok {
		stack = e.Stack
	}
	fmt.Fprintf(l.w, "workshop-init guard: error: recovered: %.300v\n%s\n", err, stack)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest[l.count%Limit] = now
	l.count++
	if oldest := l.latest[l.count%Limit]; l.count < Limit || now.Sub(oldest) >= Window {
		return
	}
	select {
	case <-l.tooMany:
	default:
		close(l.tooMany)
	}
}
