package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestHello(t *testing.T) {
	r := start(t)
	m := r.hello(`{}`)
	for _, want := range []string{`"instructions":"You may echo. Asks: false"`, `"version":"1.2.3"`, `"protocolVersion":"2025-11-25"`, `"tools":{"listChanged":true}`, `"resources":{`} {
		if !strings.Contains(string(m.Result), want) {
			t.Errorf("no %s in %s", want, m.Result)
		}
	}
	r.alive()
	if r.h.client != "test  9" || r.h.asker != nil {
		t.Errorf("client %q, asker %v", r.h.client, r.h.asker)
	}
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	m = r.of(1)
	if got := string(m.Result); !strings.Contains(got, `"annotations":{"readOnlyHint":true,"openWorldHint":false}`) || strings.Contains(got, "broken") {
		t.Errorf("tools: %s", got)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.warns.String(), "broken") {
		t.Errorf("a tool was left out, and nobody heard of it: %q", r.warns.String())
	}
}

// Every way in which a call ends, as a client sees it.
func TestAnswers(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	for i, x := range []struct {
		send, want string
		code       int
	}{
		{call(1, "rendered", `{}`), `{"content":[{"text":"as text","type":"text"}]}`, 0},
		{call(1, "fails", `{}`), `"isError":true`, 0},
		{call(1, "limited", `{}`), `"isError":true`, 0},
		{call(1, "refused", `{}`), `was not approved: nobody to ask"`, 0},
		{call(1, "refused", `{}`), `was not approved: nobody to ask"`, 0},
		{call(1, "asks", `{}`), `"isError":true`, 0},
		{call(1, "newer kind", `{}`), `{"type":"hologram","x":1}`, 0},
		{call(1, "no json", `{}`), `not valid JSON`, 0},
		{call(1, "nothing", `{}`), "", -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}`, `"structuredContent":{}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`, "", -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, "", -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, "", -32600},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`, "", -32602},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{}`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"nope"}`, "", -32601},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, "", -32601},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/list"}`, `"uri":"workshop://w"`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"workshop://w"}}`, `what w may do`, 0},
		{`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, "", -32002},
		{fmt.Sprintf(strings.Replace(hello, `"hello"`, "1", 1), `{}`), "", -32600},
	} {
		r.send(x.send)
		m := r.of(1)
		code := 0
		if m.Error != nil {
			code = m.Error.Code
		}
		if code != x.code || !strings.Contains(string(m.Result), x.want) {
			t.Errorf("%d: %s\n%s %+v", i, x.send, m.Result, m.Error)
		}
	}
	r.alive()
	// How a refused call can pass is the person's to know, once.
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(r.warns.String(), "run it with workshop call"); n != 1 {
		t.Errorf("the person was told %d times: %q", n, r.warns.String())
	}
}

// What Content says is not sent again as JSON, but on request.
func TestStructured(t *testing.T) {
	for structured, want := range map[bool]string{false: "", true: `"structuredContent":{"x":1}`} {
		r := startWith(t, &stand{structured: structured}, nil)
		r.hello(`{}`)
		r.send(call(1, "rendered", `{"x":1}`))
		got := string(r.of(1).Result)
		if !strings.Contains(got, `"as text"`) || !strings.Contains(got, want) || !structured && strings.Contains(got, "structuredContent") {
			t.Errorf("structured %v: %s", structured, got)
		}
	}
}

// A call before the handshake is answered, and the handshake still works.
func TestTooEarly(t *testing.T) {
	r := start(t)
	r.send(call(1, "echo", `{}`))
	if m := r.of(1); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("%+v", m)
	}
	r.hello(`{}`)
	r.alive()
}

// A client of the version without a handshake is told which there are.
func TestNewerVersion(t *testing.T) {
	r := start(t)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if m := r.of(1); m.Error == nil || m.Error.Code != -32022 {
		t.Errorf("%s %+v", m.Result, m.Error)
	}
	r.hello(`{}`)
	r.alive()
}

func TestCancel(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"progressToken":"p"}}}`)
	if m := r.next(); m.Method != "notifications/progress" || !strings.Contains(string(m.Params), `"begun"`) || !strings.Contains(string(m.Params), `"progressToken":"p"`) {
		t.Fatalf("%+v %s", m, m.Params)
	}
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
	// The call ended, it isn't answered, and its id is free.
	testutil.Eventually(t, "the call ends", func() bool { return r.h.running.Load() == 0 })
	r.send(call(2, "echo", `{}`))
	if m := r.next(); m.ID != 2.0 {
		t.Errorf("%+v", m)
	}
	testutil.Eventually(t, "the id is free", func() bool {
		r.send(call(1, "echo", `{"text":"again"}`))
		return r.next().Error == nil
	})

}

func TestListChanged(t *testing.T) {
	r := start(t)
	r.hello(`{}`)
	r.alive()
	r.h.changed()
	if m := r.next(); m.Method != "notifications/tools/list_changed" {
		t.Errorf("%+v", m)
	}
}

// The person at the client is asked by a form; all but a clear yes is a no.
func TestElicitation(t *testing.T) {
	const unclear = `the client's answer was not understood: the client answered the question with something else than no, once or session"`
	for answer, want := range map[string]string{
		`"result":{"action":"accept","content":{"answer":"once"}}`:    `"text":"once"`,
		`"result":{"action":"accept","content":{"answer":"session"}}`: `"text":"session"`,
		`"result":{"action":"accept","content":{"answer":"no"}}`:      `"text":"no"`,
		`"result":{"action":"accept","content":{"answer":"always"}}`:  unclear, // wasn't offered
		`"result":{"action":"accept","content":{"answer":true}}`:      unclear,
		`"result":{"action":"accept","content":{}}`:                   unclear,
		`"result":{"action":"accept"}`:                                unclear,
		`"result":{"action":"decline"}`:                               `"text":"no"`,
		`"result":{"action":"cancel"}`:                                `the question was closed without an answer`,
		`"result":{"action":"perhaps","content":{"answer":"once"}}`:   unclear,
		`"result":{}`: unclear,
		`"error":{"code":-32601,"message":"I\ncan't"}`: `the client could not ask the person: the client answered the question with an error: I can't"`,
	} {
		for _, capability := range []string{`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`} {
			r := start(t)
			if m := r.hello(capability); !strings.Contains(string(m.Result), "Asks: true") {
				t.Errorf("%s: %s", capability, m.Result)
			}
			r.send(call(1, "asks", `{}`))
			q := r.next()
			if q.Method != "elicitation/create" || !strings.Contains(string(q.Params), `run: git push`) || !strings.Contains(string(q.Params), `"enum":["no","once","session"]`) {
				t.Fatalf("%+v %s", q, q.Params)
			}
			r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,%s}`, q.ID, answer))
			if m := r.of(1); !strings.Contains(string(m.Result), want) {
				t.Errorf("%s: %s %+v", answer, m.Result, m.Error)
			}
		}
	}
	r := start(t)
	r.hello(`{"elicitation":{"url":{}}}`)
	r.send(call(1, "asks", `{}`))
	if m := r.of(1); !strings.Contains(string(m.Result), `"isError":true`) {
		t.Errorf("a client without forms: %s", m.Result)
	}
}

// A question ends with its call, and an answer to it that comes later does
// nothing.
func TestElicitationCancelled(t *testing.T) {
	r := start(t)
	r.hello(`{"elicitation":{}}`)
	r.send(call(1, "asks", `{}`))
	q := r.next()
	r.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	if m := r.next(); m.Method != "notifications/cancelled" || !strings.Contains(string(m.Params), fmt.Sprint(q.ID)) {
		t.Errorf("%+v %s", m, m.Params)
	}
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"action":"accept","content":{"answer":"once"}}}`, q.ID))
	r.alive()
}

// Where the Host can't be opened, each request says why, and so does Run.
func TestNoHost(t *testing.T) {
	broken := errors.New("no engine answers: start one")
	r := startWith(t, &stand{}, func(context.Context) error { return broken })
	r.hello(`{}`)
	for id, method := range []string{"tools/list", "resources/list"} {
		r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method))
		if m := r.of(id); m.Error == nil || m.Error.Message != broken.Error() {
			t.Errorf("%+v", m)
		}
	}
	if err := r.end(); !errors.Is(err, broken) || !strings.Contains(r.warns.String(), broken.Error()) {
		t.Errorf("%v, %q", err, r.warns.String())
	}
}
