package monitor

import (
	"bytes"
	"testing"

	"github.com/llmdo/workshop/internal/carrier"
)

// B60: a guest's line, which `logs` and `up` show, can't drive a terminal.
func TestOutputIsShown(t *testing.T) {
	var stdout, stderr bytes.Buffer
	o := newOutput(&stdout, &stderr)
	for _, h := range []carrier.Head{
		{Stream: carrier.Stdout, Line: "NOTE \x1b]0;title\x07, é,\ttab"},
		{Stream: carrier.Stderr, Line: "\x1b[2Jcleared \u202eturned\r"},
		{Stream: carrier.Stdout, Line: "READY\r"},
	} {
		o.line(h)
	}
	o.close()
	if got, want := stdout.String(), "NOTE �]0;title�, é,\ttab\nREADY�\n"; got != want {
		t.Errorf("stdout: got %q, want %q", got, want)
	}
	if got, want := stderr.String(), "�[2Jcleared �turned�\n"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
	if o.decided.Load() {
		t.Error("a line that isn't READY decides")
	}
}
