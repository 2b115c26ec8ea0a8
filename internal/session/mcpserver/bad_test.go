package mcpserver

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// What is no request is answered, and the next call works (B60).
func TestB60_BadLines(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	for _, x := range []struct {
		name, line string
		code       int
	}{
		{"no JSON", `{"jsonrpc":`, -32700},
		{"text", `hello`, -32700},
		{"two on a line", `{"jsonrpc":"2.0","method":"x"} {"jsonrpc":"2.0","method":"x"}`, -32700},
		{"no UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", -32700},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, -32700},
		{"very deep", strings.Repeat("[", 10<<20), -32700},
		{"null", `null`, -32600},
		{"a number", `7`, -32600},
		{"a batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, -32600},
		{"other version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, -32600},
		{"no method", `{"jsonrpc":"2.0"}`, -32600},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":7}`, -32600},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{"id is a fraction", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, -32600},
		{"id is beyond what can be told apart", `{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, -32600},
	} {
		r.send(x.line)
		if m := r.next(); m.Error == nil || m.Error.Code != x.code {
			t.Errorf("%s: %s %+v", x.name, m.Result, m.Error)
		}
	}
	// Nobody waits for an answer to these.
	r.send(``, "  \r", `{"jsonrpc":"2.0","method":"nope"}`, `{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"1","error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}`)
	r.alive()
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

// peak is the most memory that this process ever had, in MiB.
func peak(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			n, _ := strconv.Atoi(f[1])
			return n >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// A line of 1 GB is answered and costs what a line may cost.
func TestB60_EndlessLine(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.alive()
	runtime.GC()
	before := peak(t)
	block := []byte(strings.Repeat("x", 1<<20))
	go func() {
		_, _ = r.in.WriteString(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`)
		for range 1 << 10 {
			_, _ = r.in.Write(block)
		}
		_, _ = r.in.WriteString("\"}}\n")
	}()
	if m := r.next(); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("%+v", m)
	}
	if grown := peak(t) - before; grown > 96 {
		t.Errorf("%d MiB more", grown)
	} else {
		t.Logf("%d MiB more, %d in all", grown, before+grown)
	}
	r.alive()
}

// More calls than may run are answered busy, the others go on.
func TestB60_FloodOfCalls(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	const calls = 20000
	go func() {
		for i := range calls {
			r.send(call(i, "wait", `{}`))
		}
	}()
	for range calls - MaxInFlight {
		if m := r.next(); m.Error == nil || m.Error.Code != -32001 {
			t.Fatalf("%+v", m)
		}
	}
	if n := r.h.most.Load(); n > MaxInFlight {
		t.Errorf("%d calls at once", n)
	}
	for i := range MaxInFlight {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
	testutil.Eventually(t, "all calls end", func() bool { return r.h.running.Load() == 0 })
	r.alive()
}

// Large calls are counted by their size too, and one alone is always taken.
func TestB60_LargeCalls(t *testing.T) {
	c := newConn(nil, nil)
	c.most = 1 << 20
	large := func(id int, size int) []byte {
		return []byte(call(id, "wait", `{"text":"`+strings.Repeat("x", size)+`"}`))
	}
	busy := func(line []byte) bool {
		m, refused := c.admit(line, nil)
		if (m == nil) == (refused == nil) {
			t.Fatalf("%v, %v", m, refused)
		}
		return refused != nil
	}
	if busy(large(0, 2<<20)) {
		t.Error("a single large call is refused")
	}
	if !busy(large(1, 1)) {
		t.Error("more than the limit is taken")
	}
	c.settle(idForTest(0))
	for i := range 3 {
		if busy(large(i, 300<<10)) {
			t.Errorf("call %d is refused", i)
		}
	}
	if !busy(large(3, 300<<10)) {
		t.Error("more than the limit is taken")
	}
	c.settle(idForTest(1))
	if busy(large(3, 300<<10)) {
		t.Error("an ended call still counts")
	}
}

// Notifications that nothing waits for are not kept, even where the SDK can't
// take them: the Host is being opened.
func TestB60_FloodOfNotifications(t *testing.T) {
	opening := make(chan struct{})
	r := startWith(t, &stand{}, func(context.Context) error { <-opening; return nil })
	r.hello(`{}`)
	runtime.GC()
	before := peak(t)
	pad := strings.Repeat("x", 10000)
	for i := range 3000 {
		for _, method := range []string{"notifications/progress", "notifications/initialized", "notifications/roots/list_changed", "x"} {
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"n":%d,"pad":%q}}`, method, i, pad))
		}
	}
	if grown := peak(t) - before; grown > 64 {
		t.Errorf("%d MiB more", grown)
	}
	close(opening)
	r.alive()
}

// What the SDK gets of notifications: each that something waits for, once.
func TestB60_Notifications(t *testing.T) {
	c := newConn(nil, nil)
	if _, refused := c.admit([]byte(call("a", "wait", `{}`)), nil); refused != nil {
		t.Fatal(refused.Error)
	}
	for _, x := range []struct {
		params string
		passes bool
	}{
		{`"notifications/initialized"`, true},
		{`"notifications/initialized"`, false},
		{`"notifications/progress","params":{"progressToken":1,"progress":1}`, false},
		{`"notifications/roots/list_changed"`, false},
		{`"tools/call","params":{"name":"wait"}`, false},
		{`"notifications/cancelled"`, false},
		{`"notifications/cancelled","params":{"requestId":"b"}`, false},
		{`"notifications/cancelled","params":{"requestId":["a"]}`, false},
		{`"notifications/cancelled","params":{"requestId":"a"}`, true},
		{`"notifications/cancelled","params":{"requestId":"a"}`, false},
	} {
		m, refused := c.admit([]byte(`{"jsonrpc":"2.0","method":`+x.params+`}`), nil)
		if (m != nil) != x.passes || refused != nil {
			t.Errorf("%s: %v, %v", x.params, m, refused)
		}
	}
}

// The same id twice: the first call is answered once, and goes on.
func TestB60_SameID(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.send(call(1, "wait", `{}`), call(1, "echo", `{}`))
	if m := r.next(); m.ID != nil || m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("%+v", m)
	}
	testutil.Eventually(t, "the first runs", func() bool { return r.h.running.Load() == 1 })
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	testutil.Eventually(t, "the first ends", func() bool { return r.h.running.Load() == 0 })
	r.alive()
}

// A client that doesn't read holds up itself: memory is bounded, and its end is
// the end of the server.
func TestB60_ClientThatDoesNotRead(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.alive()
	runtime.GC()
	before := peak(t)
	go func() {
		for i := range 1000 {
			if _, err := r.in.WriteString(call(i, "big", `{}`) + "\n"); err != nil {
				return
			}
		}
	}()
	testutil.Eventually(t, "all places are taken", func() bool { return r.h.most.Load() >= 8 })
	time.Sleep(300 * time.Millisecond)
	t.Logf("%d MiB more", peak(t)-before)
	r.out.Close()
	r.in.Close()
	if err := r.gone(); err == nil || !strings.Contains(err.Error(), "writing to the client") {
		t.Errorf("%v", err)
	}
}

// One that stays and never reads again is let go.
func TestB60_Stall(t *testing.T) {
	sin, cin, _ := os.Pipe()
	cout, sout, _ := os.Pipe()
	t.Cleanup(func() { cin.Close(); cout.Close(); sin.Close(); sout.Close() })
	c := newConn(sin, sout)
	c.stall = 50 * time.Millisecond
	go func() { _ = c.send(refusal(idForTest(1), 1, strings.Repeat("x", 1<<20)), nil) }()
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for ever")
	}
	if err := c.failure(); err == nil || !strings.Contains(err.Error(), "has read nothing for") {
		t.Error(err)
	}
}

// A client that vanishes in mid-call ends it, and the session.
func TestClientVanishes(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.send(call(1, "wait", `{}`))
	testutil.Eventually(t, "it runs", func() bool { return r.h.running.Load() == 1 })
	if err := r.end(); err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, "it ends", func() bool { return r.h.running.Load() == 0 })
}

// Requests from a file are answered although the input ends at once.
func TestEndOfInput(t *testing.T) {
	r := start(t)
	r.send(fmt.Sprintf(hello, `{}`), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_, _ = r.in.WriteString(call(1, "echo", `{"text":"last"}`)) // no end of line
	r.in.Close()
	if m := r.of(1); !strings.Contains(string(m.Result), "last") {
		t.Errorf("%+v", m)
	}
	if err := r.gone(); err != nil {
		t.Error(err)
	}
}

// The end of the program's context ends everything, a call that doesn't listen
// too.
func TestContextEnds(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.send(call(1, "wait", `{}`))
	testutil.Eventually(t, "it runs", func() bool { return r.h.running.Load() == 1 })
	r.stop()
	if err := r.gone(); err != nil {
		t.Error(err)
	}
}
