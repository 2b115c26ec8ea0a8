package app

import (
	"context"
	_ "embed"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// guardLog has lines as the guard writes them; the last one is cut off.
//
//go:embed testdata/guard.log
var guardLog string

func readLog(t *testing.T, log string, chunk int, each func([]byte, events.Line) error) {
	t.Helper()
	r := &eventReader{each: each}
	for len(log) > 0 {
		n := min(chunk, len(log))
		if _, err := io.WriteString(r, log[:n]); err != nil {
			t.Fatal(err)
		}
		log = log[n:]
	}
}

// However the log arrives, the events are the guard's own lines, byte by byte;
// what is no event or too long is skipped, and what follows is read.
func TestEventsAreReadWhole(t *testing.T) {
	want := ""
	for line := range strings.Lines(guardLog) {
		if strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n") {
			want += line
		}
	}
	long := `{"time":"2026-11-21T10:00:00Z","verdict":"deny","name":"` + strings.Repeat("x", maxEventLine) + "\"}\n"
	for _, chunk := range []int{1, 7, 4096, 1 << 20} {
		got := ""
		readLog(t, long+guardLog, chunk, func(raw []byte, _ events.Line) error { got += string(raw); return nil })
		if got != want {
			t.Errorf("in pieces of %d: %q", chunk, got)
		}
	}
}

// What is printed at once is in order of time: the guard writes what it merged after
// what came later.
func TestLogIsInOrder(t *testing.T) {
	line := func(second, milli int, name string) string {
		at := time.Date(2026, 11, 21, 10, 0, second, milli*1e6, time.UTC).Format(time.RFC3339Nano)
		return `{"time":"` + at + `","kind":"dns","name":"` + name + `","verdict":"deny","reason":"not-allowed","count":1}` + "\n"
	}
	log := line(1, 0, "a") + line(3, 0, "d") + line(2, 500, "b") + line(2, 999, "c") + line(3, 0, "e") + line(9, 0, "g") + line(8, 0, "f")
	for n, want := range map[int]string{-1: "abcdefg", 3: "efg", 0: ""} {
		got := ""
		g := &GuardLog{Tail: n, Each: func(_ []byte, l events.Line) error { got += l.Name; return nil }}
		if count, err := g.Read(t.Context(), &Running{Engine: &loggingEngine{log: log}}); err != nil || got != want || count != len(want) {
			t.Errorf("tail %d: %q, %d, %v; want %q", n, got, count, err, want)
		}
	}
}

// With the engine's time before each line, the beginning of the log is known.
func TestStampedEvents(t *testing.T) {
	n := 0
	r := &eventReader{stamped: true, each: func([]byte, events.Line) error { n++; return nil }}
	io.WriteString(r, "2026-11-21T09:00:00.000000001Z READY\n2026-11-21T10:00:00.5Z "+strings.Split(guardLog, "\n")[1]+"\nno time\n")
	if n != 1 || r.first.Minute() != 0 || r.first.Nanosecond() != 1 {
		t.Errorf("%d events, from %v", n, r.first)
	}
}

// loggingEngine has a guard's log.
type loggingEngine struct {
	engine.Engine
	log string
}

func (e *loggingEngine) Logs(_ context.Context, _ string, _ []string, o engine.LogsOptions) error {
	_, err := io.WriteString(o.Stdout, e.log)
	return err
}

func TestLogTail(t *testing.T) {
	for n, want := range map[int]int{-1: 10, 0: 0, 3: 3, 99: 10} {
		g := &GuardLog{Ends: true, Tail: n, Each: func([]byte, events.Line) error { return nil }}
		if count, err := g.Read(t.Context(), &Running{Engine: &loggingEngine{log: guardLog}}); err != nil || count != want {
			t.Errorf("--tail %d: %d events, %v", n, count, err)
		}
	}
}
