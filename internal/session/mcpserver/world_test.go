package mcpserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/tool"
)

// stand is a Host whose calls do what a test of the protocol needs: a real one
// would need a worker for each. The real one is tested in host_test.go.
type stand struct {
	asker   approval.Asker
	client  string
	changed func()
	running atomic.Int32
	most    atomic.Int32
	closed  atomic.Bool
	mu      sync.Mutex
	more    []session.Tool

	structured bool // Options.Structured
}

func (h *stand) Tools(context.Context) ([]session.Tool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	object := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
	return append([]session.Tool{
		{Name: "echo", Title: "Echo", Description: "Says it again.", InputSchema: object, OutputSchema: object, ReadOnly: true, Idempotent: true},
		{Name: "limited", Title: "Limited", InputSchema: object},
		{Name: "broken", InputSchema: json.RawMessage(`{"type":"array"}`)},
	}, h.more...), nil
}

func (h *stand) Call(ctx context.Context, name string, args json.RawMessage, o session.Options) (*session.Result, error) {
	for n := h.running.Add(1); ; {
		if m := h.most.Load(); n <= m || h.most.CompareAndSwap(m, n) {
			break
		}
	}
	defer h.running.Add(-1)
	text := func(s string) []json.RawMessage {
		b, _ := json.Marshal(map[string]string{"type": "text", "text": s})
		return []json.RawMessage{b}
	}
	switch name {
	case "echo":
		return &session.Result{Structured: args, Content: text(string(args))}, nil
	case "rendered":
		return &session.Result{Structured: args, Content: text("as text"), Rendered: true}, nil
	case "wait":
		if o.Progress != nil {
			o.Progress(session.Progress{Message: "begun"})
		}
		<-ctx.Done()
		return nil, ctx.Err()
	case "big":
		return &session.Result{Content: text(strings.Repeat("x", 8<<20))}, nil
	case "fails":
		return &session.Result{Content: text("it went wrong"), Failed: true}, nil
	case "newer kind":
		return &session.Result{Content: []json.RawMessage{json.RawMessage(`{"type":"hologram","x":1}`)}}, nil
	case "no json":
		return &session.Result{Content: []json.RawMessage{json.RawMessage(`{`)}}, nil
	case "limited":
		return nil, &tool.NotOfferedError{Worker: "w", Tool: name, Why: "only git"}
	case "refused":
		return nil, &approval.RefusedError{Why: "nobody to ask", Hint: "run it with workshop call"}
	case "asks":
		if h.asker == nil {
			return nil, &approval.RefusedError{Why: "nobody to ask"}
		}
		a, err := h.asker.Ask(ctx, approval.Question{Text: "run: git push", Why: "default", Rule: &approval.Rule{Tool: "shell", Match: "git push"}})
		if err != nil {
			return nil, err
		}
		return &session.Result{Content: text(string(a))}, nil
	}
	return nil, &tool.NotOfferedError{Worker: "w", Tool: name, Offered: []string{"echo"}}
}

func (h *stand) Resources() []session.Resource {
	return []session.Resource{{URI: "workshop://w", Name: "w", MIMEType: "text/plain", Text: "what w may do"}}
}

func (h *stand) Close() error { h.closed.Store(true); return nil }

// raw is a client that writes lines.
type raw struct {
	testing.TB
	h     *stand
	in    *os.File // of the server
	out   *os.File
	lines *bufio.Reader
	done  chan error
	stop  context.CancelFunc
	warns strings.Builder
}

func newRaw(t testing.TB, in, out *os.File) *raw {
	return &raw{TB: t, in: in, out: out, lines: bufio.NewReaderSize(out, 1<<20), done: make(chan error, 1)}
}

func start(t testing.TB) *raw {
	t.Helper()
	return startWith(t, &stand{}, nil)
}

func startWith(t testing.TB, h *stand, opening func(context.Context) error) *raw {
	t.Helper()
	sin, cin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cout, sout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := newRaw(t, cin, cout)
	r.h, r.stop = h, stop
	var mu sync.Mutex
	tell := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		r.warns.WriteString(s + "\n")
	}
	o := Options{Structured: h.structured, In: sin, Out: sout, Version: "1.2.3", Instructions: func(asks bool) string { return fmt.Sprintf("You may echo. Asks: %t", asks) }, Warn: tell, Hint: tell}
	go func() {
		r.done <- run(ctx, o, func(ctx context.Context, a approval.Asker, client string, changed func()) (host, error) {
			if opening != nil {
				if err := opening(ctx); err != nil {
					return nil, err
				}
			}
			h.asker, h.client, h.changed = a, client, changed
			return h, nil
		})
	}()
	t.Cleanup(func() { stop(); cin.Close(); cout.Close() })
	return r
}

func (r *raw) send(lines ...string) {
	r.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(r.in, l+"\n"); err != nil {
			r.Fatal(err)
		}
	}
}

// message is what the server says.
type message struct {
	ID     any             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r *raw) next() message {
	r.Helper()
	_ = r.out.SetReadDeadline(time.Now().Add(time.Minute))
	line, err := r.lines.ReadBytes('\n')
	if err != nil {
		r.Fatalf("the server says nothing: %v", err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		r.Fatalf("%.200s: %v", line, err)
	}
	return m
}

// of waits for the answer to a request.
func (r *raw) of(id any) message {
	r.Helper()
	for {
		if m := r.next(); m.Method == "" && fmt.Sprint(m.ID) == fmt.Sprint(id) {
			return m
		}
	}
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"test\n","version":"9"}}}`

func (r *raw) hello(capabilities string) message {
	r.Helper()
	r.send(fmt.Sprintf(hello, capabilities))
	m := r.of("hello")
	r.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return m
}

func call(id any, name, args string) string {
	n, _ := json.Marshal(id)
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, n, name, args)
}

// alive expects that the next call works.
func (r *raw) alive() {
	r.Helper()
	r.send(call("alive", "echo", `{"text":"hi"}`))
	if m := r.of("alive"); m.Error != nil || !strings.Contains(string(m.Result), `"structuredContent":{"text":"hi"}`) {
		r.Fatalf("the next call: %s %+v", m.Result, m.Error)
	}
}

// end closes the input and expects the server to end.
func (r *raw) end() error {
	r.Helper()
	r.in.Close()
	return r.gone()
}

func (r *raw) gone() error {
	r.Helper()
	select {
	case err := <-r.done:
		if !r.h.closed.Load() && r.h.changed != nil {
			r.Error("the Host isn't closed")
		}
		return err
	case <-time.After(20 * time.Second):
		r.Fatal("the server goes on")
		return nil
	}
}
