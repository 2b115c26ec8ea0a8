package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// beServer is an MCP server in a worker.
func beServer(role string) {
	if role == "slow" {
		time.Sleep(time.Hour)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: role, Version: "1"}, nil)
	type who struct {
		Name string `json:"name"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Greets.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(ctx context.Context, r *mcp.CallToolRequest, a who) (*mcp.CallToolResult, any, error) {
		f, err := os.OpenFile("greeted", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(f, a.Name)
		f.Close()
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "half", Progress: 1, Total: 2})
		time.Sleep(20 * time.Millisecond)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + a.Name + " from " + os.Getenv("WHERE")}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		os.Exit(9)
		return nil, nil, nil
	})
	s.Run(context.Background(), &mcp.StdioTransport{})
}

// withServers is a worker whose file lists tools, in a workshop with the MCP
// servers good, slow and missing.
func withServers(t *testing.T, tools string) (*workshop.Workshop, *aWorker) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ws := aWorkshop(t, "  mcp:\n    good: {command: "+exe+", env: {"+roleVariable+": good, WHERE: inside}}\n    slow: {command: "+exe+", env: {"+roleVariable+": slow}}\n    missing: {command: /no/such/program}\n", "w", "allowed-tools: "+tools)
	return ws, startWorker(t, grantOf(ws, "w"))
}

func TestServersInAWorker(t *testing.T) {
	ws, w := withServers(t, "Bash, mcp__good, mcp__missing")
	var warned []string
	h := openHost(t, Config{Workshop: ws, Dial: w.dial, Warn: func(s string) { warned = append(warned, s) }}, "w")
	if got := names(t, h); !slices.Equal(got, []string{"shell", "mcp__good__die", "mcp__good__greet"}) {
		t.Errorf("%q", got)
	}
	if all := strings.Join(warned, "\n"); !strings.Contains(all, "mcp__missing") && !strings.Contains(all, "MCP server missing") {
		t.Errorf("%q", warned)
	}
	var told []Progress
	r, err := h.Call(context.Background(), "mcp__good__greet", args("name", "Ada"), Options{Progress: func(p Progress) { told = append(told, p) }})
	if err != nil || textOf(r) != "hello Ada from inside" {
		t.Errorf("%v %v", r, err)
	}
	if len(told) != 1 || told[0] != (Progress{"half", 1, 2}) {
		t.Errorf("%v", told)
	}
	err = fails(t, h, "mcp__good__die")
	var lost *LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "exit code 9") {
		t.Error(err)
	}
	if strings.Count(err.Error(), "ended") != 1 || strings.Count(err.Error(), "server good") != 1 {
		t.Errorf("it says a thing twice: %v", err)
	}
	must(t, h, "mcp__good__greet", "name", "Bob")
	if got := w.file("greeted"); got != "Ada\nBob\n" {
		t.Errorf("%q", got)
	}
}

// B41 and B42 hold for them too; what a server says of itself makes no call
// auto.
func TestServersAreOptInAndAsked(t *testing.T) {
	ws, w := withServers(t, "Bash, mcp__good__greet")
	h := openHost(t, Config{Workshop: ws, Dial: w.dial}, "w")
	must(t, h, "mcp__good__greet", "name", "first") // without a list before
	if got := names(t, h); !slices.Equal(got, []string{"shell", "mcp__good__greet"}) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{"mcp__good__die", "mcp__good__nonsense", "mcp__slow__x", "mcp__none__x", "mcp__good"} {
		var no *tool.NotOfferedError
		if err := fails(t, h, name); !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	h = openHost(t, Config{Workshop: ws, Dial: w.dial, Gate: &approval.Gate{}}, "w")
	var refused *approval.RefusedError
	if err := fails(t, h, "mcp__good__greet", "name", "second"); !errors.As(err, &refused) {
		t.Error(err)
	}
	if got := w.file("greeted"); got != "first\n" {
		t.Errorf("%q", got)
	}
}

// A list doesn't wait for a server that takes long.
func TestASlowServerHoldsNothingUp(t *testing.T) {
	ws, w := withServers(t, "Bash, mcp__slow, mcp__good")
	h := openHost(t, Config{Workshop: ws, Dial: w.dial}, "w")
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wg.Go(func() { h.Tools(ctx) })
	begun := time.Now()
	must(t, h, "mcp__good__greet", "name", "x")
	must(t, h, "shell", "command", "true")
	if took := time.Since(begun); took > listTime {
		t.Errorf("calls waited %v", took)
	}
}
