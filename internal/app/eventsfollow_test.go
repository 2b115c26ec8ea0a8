package app

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// loggedLine is a line of a guard's log: the engine's time of it and the name that it has.
type loggedLine struct {
	at   time.Duration // since logBase
	name string
}

var logBase = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func (l loggedLine) time() time.Time { return logBase.Add(l.at) }

func (l loggedLine) String() string {
	return fmt.Sprintf(`{"time":%q,"kind":"dns","name":%q,"verdict":"deny","reason":"not-allowed","count":1}`, l.time().Format(time.RFC3339Nano), l.name)
}

// restartingEngine has the log of a guard that ends each time after the log was followed to
// its end, and gives times as an engine does.
type restartingEngine struct {
	engine.Engine
	podman bool
	guards [][]loggedLine // what each guard logs
	fresh  bool           // each guard has a log of its own
	runs   int
	end    func() // after the last guard
}

func (e *restartingEngine) Logs(_ context.Context, _ string, _ []string, o engine.LogsOptions) error {
	var log []loggedLine
	for i, lines := range e.guards[:e.runs+1] {
		if i == e.runs || !e.fresh {
			log = append(log, lines...)
		}
	}
	if o.Follow && e.runs < len(e.guards)-1 {
		e.runs++
	} else if o.Follow {
		e.end()
	}
	for _, l := range log {
		at, layout := l.time(), "2006-01-02T15:04:05.000000000Z07:00"
		if o.Since != "" {
			since, err := time.Parse(time.RFC3339Nano, o.Since)
			if err != nil {
				return err
			}
			if !e.podman && at.Before(since) || e.podman && !at.After(asPodman(since)) {
				continue
			}
		}
		if e.podman {
			layout = time.RFC3339
		}
		if _, err := fmt.Fprintln(o.Stdout, at.Format(layout), l); err != nil {
			return err
		}
	}
	return nil
}

// asPodman is a time as podman reads it from a query (ParseInputTime of pkg/util/utils.go).
func asPodman(t time.Time) time.Time {
	f, _ := strconv.ParseFloat(fmt.Sprintf("%d.%09d", t.Unix(), t.Nanosecond()), 64)
	whole, part := math.Modf(f)
	return time.Unix(int64(whole), int64(part*1e9))
}

// B28: a log that is followed has each event once, in order, over restarts of the guard, also
// where the engine says less of a line's time than it compares.
func TestFollow(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name   string
		guards [][]loggedLine
		fresh  bool
		since  string
		tail   int
		want   string
	}{
		{name: "one guard", guards: [][]loggedLine{{{1 * ms, "a"}, {2 * ms, "b"}}}, tail: -1, want: "ab"},
		{name: "no line", guards: [][]loggedLine{{}, {}}, tail: -1, want: ""},
		{name: "restarted within a second", guards: [][]loggedLine{{{100 * ms, "a"}, {200 * ms, "b"}}, {{300 * ms, "c"}, {400 * ms, "d"}}}, tail: -1, want: "abcd"},
		{name: "restarted seconds later", guards: [][]loggedLine{{{100 * ms, "a"}}, {{4100 * ms, "b"}}}, tail: -1, want: "ab"},
		{name: "the time after a line", guards: [][]loggedLine{{{500 * ms, "a"}}, {{500*ms + 1, "b"}, {500*ms + 2, "c"}}}, tail: -1, want: "abc"},
		{name: "one time", guards: [][]loggedLine{{{500 * ms, "a"}}, {{500 * ms, "b"}}}, tail: -1, want: "ab"},
		{name: "whole seconds", guards: [][]loggedLine{{{0, "a"}, {1000 * ms, "b"}}, {{1000 * ms, "c"}, {2000 * ms, "d"}}, {{2000 * ms, "e"}}}, tail: -1, want: "abcde"},
		{name: "equal lines", guards: [][]loggedLine{{{500 * ms, "a"}}, {{500 * ms, "a"}}, {{600 * ms, "b"}}}, tail: -1, want: "aab"},
		{name: "another log", guards: [][]loggedLine{{{100 * ms, "a"}, {300 * ms, "b"}}, {{200 * ms, "c"}, {400 * ms, "d"}}}, fresh: true, tail: -1, want: "abcd"},
		{name: "a clock that is set back: what is later comes again", guards: [][]loggedLine{{{5000 * ms, "a"}, {2000 * ms, "b"}, {900 * ms, "c"}}, {{1000 * ms, "d"}}}, tail: -1, want: "abcabd"},
		{name: "the last one, then more", guards: [][]loggedLine{{{100 * ms, "a"}, {200 * ms, "b"}}, {{300 * ms, "c"}}}, tail: 1, want: "bc"},
		{name: "only what comes", guards: [][]loggedLine{{{100 * ms, "a"}, {200 * ms, "b"}}, {{300 * ms, "c"}}}, tail: 0, want: "c"},
		{name: "since a time in the last second", guards: [][]loggedLine{{{100 * ms, "a"}, {200 * ms, "b"}}, {{300 * ms, "c"}}}, since: "2026-11-21T10:00:00.15Z", tail: -1, want: "bc"},
		{name: "since a time, the last one", guards: [][]loggedLine{{{100 * ms, "a"}, {200 * ms, "b"}}, {{300 * ms, "c"}}}, since: "2026-11-21T10:00:00.15Z", tail: 5, want: "bc"},
	} {
		for _, podman := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, podman %v", c.name, podman), func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancel(t.Context())
				e := &restartingEngine{podman: podman, guards: c.guards, fresh: c.fresh, end: cancel}
				got := ""
				g := &GuardLog{Denied: true, Since: c.since, Tail: c.tail, Each: func(_ []byte, l events.Line) error { got += l.Name; return nil }}
				if err := g.Follow(ctx, &Running{Engine: e}); err != nil || got != c.want {
					t.Errorf("got %q, %v, want %q", got, err, c.want)
				}
			})
		}
	}
}

// What goes wrong with an event ends the following.
func TestFollowEnds(t *testing.T) {
	e := &restartingEngine{guards: [][]loggedLine{{{0, "a"}, {1, "b"}}, {{2, "c"}}}}
	n := 0
	g := &GuardLog{Tail: -1, Each: func([]byte, events.Line) error { n++; return io.EOF }}
	if err := g.Follow(t.Context(), &Running{Engine: e}); err != io.EOF || n != 1 {
		t.Errorf("%d events, %v, want the error of the first", n, err)
	}
}
