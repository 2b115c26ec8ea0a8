package panics

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// fresh counts from 0, into a buffer.
func fresh(t *testing.T) *bytes.Buffer {
	t.Helper()
	out, old := &bytes.Buffer{}, recovered
	recovered = newLog(out)
	t.Cleanup(func() { recovered = old })
	return out
}

// TestB60_Serve: a panic ends what is served, is counted, and is written with its
// stack; one of a helper is one of who waits for it.
func TestB60_Serve(t *testing.T) {
	var none []byte
	for _, c := range []struct {
		name  string
		serve func()
		in    string // in the log
	}{
		{"index", func() { _ = none[len(t.Name())] }, "index out of range"},
		{"value", func() { panic("a value") }, "TestB60_Serve.func2"},
		{"long", func() { panic(strings.Repeat("x", 1<<20)) }, "xxx"},
		{"of a helper", func() {
			err := make(chan error)
			go func() { err <- Try(func() error { helper(); return nil }) }()
			Again(<-err)
		}, "panics.helper"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := fresh(t)
			failed := 0
			if Serve(c.serve, func() { failed++ }) || failed != 1 || Count() != 1 {
				t.Errorf("failed %d, count %d, want 1 and 1", failed, Count())
			}
			if got := out.String(); !strings.Contains(got, c.in) || len(got) > maxStack+1000 {
				t.Errorf("log of %d bytes, want %q in it:\n%.2000s", len(got), c.in, got)
			}
		})
	}
	fresh(t)
	if !Serve(func() { Again(errors.New("no panic")) }, func() { t.Error("failed") }) || Count() != 0 {
		t.Errorf("an error was taken for a panic: count %d", Count())
	}
}

func helper() { panic("of a helper") }

func TestB60_TooMany(t *testing.T) {
	for _, c := range []struct {
		name  string
		every time.Duration
		count int
		want  bool
	}{
		{"nine in a minute", time.Second, Limit - 1, false},
		{"ten in a minute", time.Second, Limit, true},
		{"many, slowly", Window/(Limit-1) + 1, 100, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog(&bytes.Buffer{})
			for i := range c.count {
				l.add(&Error{Value: i}, time.Time{}.Add(time.Hour+time.Duration(i)*c.every))
			}
			got := false
			select {
			case <-l.tooMany:
				got = true
			default:
			}
			if got != c.want {
				t.Errorf("too many: %v, want %v", got, c.want)
			}
		})
	}
}
