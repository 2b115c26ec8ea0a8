package session

import (
	"context"
	"testing"
	"time"
)

// A call of one tool neither waits for the MCP servers of the others nor warns
// of them.
func TestOneToolStartsNoOtherServer(t *testing.T) {
	ws, w := withServers(t, "Bash, mcp__slow, mcp__missing, mcp__good")
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Warn: func(text string) { t.Error(text) }}, "w")
	begun := time.Now()
	for _, name := range []string{"shell", "mcp__good__greet"} {
		d, ok := h.Tool(context.Background(), name)
		if !ok || d.Name != name || len(d.InputSchema) == 0 {
			t.Errorf("%s: %v %+v", name, ok, d)
		}
	}
	for _, name := range []string{"read_file", "mcp__good__nonsense", "nonsense"} {
		if _, ok := h.Tool(context.Background(), name); ok {
			t.Errorf("%s is offered", name)
		}
	}
	if took := time.Since(begun); took > listTime/2 {
		t.Errorf("it waited %v", took)
	}
}
