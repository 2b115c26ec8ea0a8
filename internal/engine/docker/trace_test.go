package docker

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/engine"
)

// TestTrace prints when each step of an up ran, with WORKSHOP_TRACE=1.
func TestTrace(t *testing.T) {
	if os.Getenv("WORKSHOP_TRACE") == "" {
		t.Skip("prints a trace with WORKSHOP_TRACE=1")
	}
	f := newFixture(t, nil, "one")
	for range 2 {
		f.up(t)
		f.down(t)
	}
	p := f.plan(t)
	start := time.Now()
	begun := map[int]time.Duration{}
	if err := f.e.Apply(t.Context(), p, func(ev engine.Event) {
		at := time.Since(start)
		if ev.Status == engine.StepStarted {
			begun[ev.Step.ID] = at
		} else {
			fmt.Printf("%6.1f - %6.1f  %s\n", float64(begun[ev.Step.ID].Microseconds())/1e3, float64(at.Microseconds())/1e3, ev.Step)
		}
	}); err != nil {
		t.Fatal(err)
	}
	fmt.Println("apply", time.Since(start))
}
