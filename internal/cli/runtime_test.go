package cli

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/workshop"
)

// TestRuntimeIsSaid: a worker's line of `up` has its runtime.
func TestRuntimeIsSaid(t *testing.T) {
	w := &workshop.Worker{Name: "w"}
	w.Container.Runtime.V = "runsc"
	if line := workerLine(w, false); !strings.Contains(line, "; runtime runsc; ") {
		t.Error(line)
	}
}
