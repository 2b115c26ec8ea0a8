//go:build linux

package e2e

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// toolEnded is printed behind a watched command: from there on it is we who talk.
const toolEnded = "the tool has ended"

// watched is a command in a worker as a person sees it: lines, and when.
type watched struct {
	lines []watchedLine
	code  int
	began testutil.Instant
	ended testutil.Instant
}

type watchedLine struct {
	at   testutil.Instant
	text string
}

// watch runs a line of shell by `workshop exec`.
func watch(s *scenario.Scenario, worker, line string) watched {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// The engine has the clock of this machine, its log microseconds.
	w := watched{began: testutil.Now()}
	cmd := s.Command(ctx, "exec", worker, "--", "sh", "-c", "{ "+line+"\n} 2>&1; code=$?; echo '"+toolEnded+"'; exit $code")
	r, out := io.Pipe()
	cmd.Stdout, cmd.Stderr = out, out
	done := make(chan error, 1)
	go func() {
		err := cmd.Run()
		out.Close()
		done <- err
	}()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		w.lines = append(w.lines, watchedLine{testutil.Now(), lines.Text()})
	}
	var exit *exec.ExitError
	if err := <-done; err != nil && !errors.As(err, &exit) {
		s.Fatal(err)
	}
	w.code, w.ended = cmd.ProcessState.ExitCode(), testutil.Now()
	return w
}

// after is the time from a moment by the clock until a line, as far as it counts.
func (w watched) after(moment time.Time, line testutil.Instant) time.Duration {
	return w.ended.Part(w.began, line.Wall().Sub(moment))
}

// at tells when a text stood there first.
func (w watched) at(text string) (testutil.Instant, bool) {
	for _, l := range w.lines {
		if strings.Contains(l.text, text) {
			return l.at, true
		}
	}
	return testutil.Instant{}, false
}

func (w watched) text() string {
	var b strings.Builder
	for _, l := range w.lines {
		b.WriteString(l.at.Wall().Sub(w.began.Wall()).Round(time.Millisecond).String() + "\t" + l.text + "\n")
	}
	return b.String()
}

// refused is when the guard refused the host first, by its event.
func (w watched) refused(t *testing.T, s *scenario.Scenario, host string) time.Time {
	t.Helper()
	var first time.Time
	for _, e := range s.Events() {
		at, err := time.Parse(time.RFC3339Nano, str(e, "time"))
		if err == nil && !at.Before(w.began.Wall()) && e["name"] == host && e["verdict"] == "deny" && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if first.IsZero() {
		t.Fatalf("the guard didn't refuse %s:\n%s", host, w.text())
	}
	return first
}

func str(e scenario.Event, key string) string { s, _ := e[key].(string); return s }
