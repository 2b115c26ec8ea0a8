package namespace

import (
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
)

// A line that is several entries has one time, that of the first.
func TestStamps(t *testing.T) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 5, time.UTC)
	const stamp = "2026-11-21T10:00:00.000000005Z "
	times := stamps{}
	for _, c := range []struct{ stream, text, want string }{
		{logfile.Stdout, "a\n", stamp + "a\n"},
		{logfile.Stdout, "b", stamp + "b"},
		{logfile.Stderr, "c", stamp + "c"},
		{logfile.Stdout, "d", "d"},
		{logfile.Stdout, "e\n", "e\n"},
		{logfile.Stdout, "f\n", stamp + "f\n"},
		{logfile.Stderr, "g\n", "g\n"},
	} {
		if got := times.add(logfile.Entry{Time: at, Stream: c.stream, Text: c.text}); got != c.want {
			t.Errorf("%s %q: got %q, want %q", c.stream, c.text, got, c.want)
		}
	}
}
