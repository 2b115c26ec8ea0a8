package firewall

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/cli/terminal"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/events"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// loggingEngine has a guard's log.
type loggingEngine struct{ engine.Engine }

func (loggingEngine) Logs(_ context.Context, _ string, _ []string, o engine.LogsOptions) error {
	log, err := os.ReadFile(filepath.FromSlash("../../app/testdata/guard.log"))
	if err != nil {
		return err
	}
	_, err = o.Stdout.Write(log)
	return err
}

func logText(ends bool, worker string, denied bool) string {
	return logTextAt(0, ends, worker, denied)
}

func logTextAt(width int, ends bool, worker string, denied bool) string {
	var out bytes.Buffer
	plain := terminal.Paint(false)
	text := &eventText{w: &out, width: width, workers: 5, local: time.UTC, day: "2026-11-20", told: map[string]bool{}, faint: plain, command: (&command.System{}).CommandLine,
		paint: map[events.Verdict]func(string) string{events.Deny: plain, events.Allow: plain, events.End: plain, events.Note: plain}}
	g := &app.GuardLog{Ends: ends, Worker: worker, Denied: denied, Tail: -1, Each: text.print}
	if _, err := g.Read(context.Background(), &app.Running{Engine: loggingEngine{}}); err != nil {
		return err.Error()
	}
	return out.String()
}

// What a person sees of a denial: what, why, and the command that allows it,
// once (B28).
func TestLogText(t *testing.T) {
	golden(t, "log", logText(false, "", false))
	golden(t, "log-denied-v", logText(true, "v", true))
	if all := logText(true, "w", false); !strings.Contains(all, "10:00:06  w      ended    ok.example.org:443 (198.51.100.10)  sent 1.2kB, received 5.3MB\n") || strings.ContainsRune(all, 0x1b) {
		t.Error(all)
	}
}

// On a terminal lines break at blanks; a command that doesn't fit has a line of its own.
func TestLogTextIsWrapped(t *testing.T) {
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	narrow, wide := logTextAt(60, false, "", false), logText(false, "", false)
	if words(narrow) != words(wide) {
		t.Errorf("other words:\n%s", narrow)
	}
	for line := range strings.Lines(narrow) {
		if at := strings.Index(line, "a.example.org:22"); at > 0 && !strings.HasPrefix(line[at:], "a.example.org:22  lines") && !strings.HasPrefix(line[at:], "a.example.org:22 --worker") {
			t.Errorf("no gap after the target: %q", line)
		}
		if _, after, ok := strings.Cut(line, "  denied"); ok && len(after)-len(strings.TrimLeft(after, " ")) != 3 {
			t.Errorf("the gap after the verdict: %q", line)
		}
		if line = strings.TrimSuffix(line, "\n"); runewidth.StringWidth(line) > 60 && !strings.HasPrefix(line, "  workshop firewall allow ") {
			t.Errorf("%d columns: %q", runewidth.StringWidth(line), line)
		}
	}
}

// What `firewall explain` looks up several times is one line, and a worker's own denial
// of the same another. A live change is named once.
func TestLogTextOfExplain(t *testing.T) {
	var out bytes.Buffer
	plain := terminal.Paint(false)
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	text := &eventText{w: &out, workers: 5, local: time.UTC, day: "2026-11-21", told: map[string]bool{}, faint: plain, command: (&command.System{}).CommandLine,
		paint: map[events.Verdict]func(string) string{events.Deny: plain}}
	l := events.Line{Time: at, Room: "room", Workers: []string{"w"}, Kind: events.DNS, Name: "a.example.org", Port: 53, Protocol: "dns", Verdict: events.Deny, Reason: firewall.ReasonDenied, Rule: firewall.LiveLine, Explained: true, Count: 1}
	again, own, later, other := l, l, l, l
	again.Count = 2
	own.Explained = false
	later.Time = at.Add(time.Minute)
	other.Name = "b.example.org"
	for _, l := range []events.Line{l, again, own, other, later} {
		if err := text.print(nil, l); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "log-explained", out.String())
}

// Every reason of the guard has words.
func TestReasonText(t *testing.T) {
	for _, reason := range []string{
		firewall.ReasonAllowed, firewall.ReasonOpen, firewall.ReasonLearned, firewall.ReasonName, firewall.ReasonDoH, events.ReasonMismatch, events.ReasonUnresolved, events.ReasonUnreachable,
		events.ReasonPanic, events.ReasonPolicy, events.ReasonLive, events.ReasonLearning, events.ReasonUpload, events.ReasonWildcard, events.ReasonProxy,
	} {
		if text := app.ReasonText(reason, "", ""); text == reason || text == "" {
			t.Errorf("%s has no words", reason)
		}
	}
	note := events.Line{Kind: events.Guard, Verdict: events.Note, Reason: events.ReasonLearning, Rule: "learning began, until 2026-11-22T00:03:48Z"}
	if got := eventReason(note); got != note.Rule {
		t.Errorf("a note says %q", got)
	}
}

// golden compares with testdata/golden/NAME.txt, and rewrites it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what comes out; -update rewrites it\n%s", file, got)
	}
}
