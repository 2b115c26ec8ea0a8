package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
)

// An error may hold what an image or a worker wrote: it must not drive the
// terminal.
func TestErrorsArePrintable(t *testing.T) {
	var b bytes.Buffer
	s := &System{Env: &app.Env{}, Err: &b}
	s.PrintFailure(app.Fail(app.CodeFailed, "%w", errors.New("PATH=\x1b]52;c;Zm9v\x07\x1b[2J\r\x9b1A\nnext\tline\n")).Hint("it\x1b[A"))
	if got := b.String(); strings.ContainsAny(got, "\x1b\x07\r") || strings.Contains(got, "\x9b") || !strings.Contains(got, `\x1b]52`) || !strings.Contains(got, "\n  next\tline\n") {
		t.Errorf("%q", got)
	}
}
