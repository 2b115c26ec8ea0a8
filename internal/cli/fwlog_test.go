package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

// loggingEngine has a guard's log, and hands out what is new at each call.
type loggingEngine struct {
	engine.Engine
	logs  []string
	since []string
	end   func() // when there is no more
}

func (e *loggingEngine) Logs(_ context.Context, _ string, _ []string, o engine.LogsOptions) error {
	e.since = append(e.since, o.Since)
	if len(e.logs) == 0 {
		e.end()
		return nil
	}
	log := e.logs[0]
	if o.Follow {
		e.logs = e.logs[1:]
	}
	n := 0
	for line := range strings.Lines(log) {
		if n++; o.Timestamps {
			line = time.Date(2026, 11, 21, 10, 0, n, 5, time.UTC).Format(time.RFC3339Nano) + " " + line
		}
		if _, err := io.WriteString(o.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func logText(ends bool, worker string, denied bool) string {
	var out bytes.Buffer
	plain := paint(false)
	text := &eventText{w: &out, workers: 5, local: time.UTC, day: "2026-11-20", told: map[string]bool{}, faint: plain,
		paint: map[events.Verdict]func(string) string{events.Deny: plain, events.Allow: plain, events.End: plain, events.Note: plain}}
	g := &eventLog{options: fwLogOptions{worker: worker, denied: denied, tail: -1}, ends: ends, print: text.print}
	if err := g.read(context.Background(), &loggingEngine{logs: []string{guardLog}}, "p", engine.LogsOptions{}, false); err != nil {
		return err.Error()
	}
	return out.String()
}

// What a person sees of a denial: what, why, and the command that allows it,
// once (B28).
func TestLogText(t *testing.T) {
	golden(t, "fwlog", logText(false, "", false))
	golden(t, "fwlog-denied-v", logText(true, "v", true))
	if all := logText(true, "w", false); !strings.Contains(all, "10:00:06  w      ended    ok.example.org:443 (198.51.100.10)  sent 1.2kB, received 5.3MB\n") || strings.ContainsRune(all, 0x1b) {
		t.Error(all)
	}
}

// Every reason of the guard has words.
func TestReasonText(t *testing.T) {
	for _, reason := range []string{
		firewall.ReasonAllowed, firewall.ReasonOpen, firewall.ReasonLearned, firewall.ReasonName, firewall.ReasonDoH, events.ReasonMismatch, events.ReasonUnresolved, events.ReasonUnreachable,
		events.ReasonPanic, events.ReasonPolicy, events.ReasonLive, events.ReasonLearning, events.ReasonUpload, events.ReasonWildcard, events.ReasonStripped,
	} {
		if text := reasonText(reason); text == reason || text == "" {
			t.Errorf("%s has no words", reason)
		}
	}
	note := events.Line{Kind: events.Guard, Verdict: events.Note, Reason: events.ReasonLearning, Rule: "learning began, until 2026-11-22T00:03:48Z"}
	if got := eventReason(note); got != note.Rule {
		t.Errorf("a note says %q", got)
	}
}

// The tail counts events that are asked for, and a log that is followed goes on
// behind the last line, also where the guard was started again.
func TestLogTailAndFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	first, second := guardLog, strings.Replace(guardLog, "a.example.org", "again.example.org", 1)
	e := &loggingEngine{logs: []string{first, "", second}, end: cancel}
	var got []string
	g := &eventLog{options: fwLogOptions{worker: "w", denied: true, tail: 1}, print: func(_ []byte, l events.Line) error {
		got = append(got, eventTarget(l))
		return nil
	}}
	e.logs = append([]string{first}, e.logs[1:]...)
	if err := g.follow(ctx, e, "p"); err != nil {
		t.Fatal(err)
	}
	// the tail, then everything that the follower is given
	if len(got) < 2 || got[0] != `x\x1b[2J\u202e:80` || !strings.Contains(strings.Join(got, " "), "again.example.org") {
		t.Errorf("%q", got)
	}
	if want := "2026-11-21T10:00:12.000000006Z"; e.since[0] != "" || e.since[1] != want || e.since[len(e.since)-1] < want {
		t.Errorf("asked for what is newer than %q", e.since)
	}
}

func TestLogTail(t *testing.T) {
	for n, want := range map[int]int{-1: 10, 0: 0, 3: 3, 99: 10} {
		g := &eventLog{options: fwLogOptions{tail: n}, ends: true, print: func([]byte, events.Line) error { return nil }}
		if err := g.read(t.Context(), &loggingEngine{logs: []string{guardLog}}, "p", engine.LogsOptions{}, false); err != nil || g.printed != want {
			t.Errorf("--tail %d: %d events, %v", n, g.printed, err)
		}
	}
}
