package dns

import (
	"context"
	"testing"
	"time"
)

// TestB60_PanicOfAQuestion: who waits for a name that panics is answered, and the
// name isn't waited for again.
func TestB60_PanicOfAQuestion(t *testing.T) {
	var c cache
	c.init()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ask := func(context.Context, key) (Answer, error) { panic("a test's panic") }
	if _, err := c.get(ctx, nil, key{name(t, "a.example.org"), A}, ask); err != errPanicked {
		t.Errorf("%v, want %v", err, errPanicked)
	}
	if len(c.flight) != 0 {
		t.Errorf("%d questions are under way", len(c.flight))
	}
}
