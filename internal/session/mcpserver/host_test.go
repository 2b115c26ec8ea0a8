package mcpserver

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/workshop"
)

// serve is a server whose Host is a real one, with workers that can't be reached.
func serve(t *testing.T, fsys fstest.MapFS, worker string, o Options, dialled *int) *raw {
	t.Helper()
	w, problems := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{Home: "/home/me"})
	if w == nil {
		t.Fatal(problems)
	}
	sin, cin, _ := os.Pipe()
	cout, sout, _ := os.Pipe()
	t.Cleanup(func() { cin.Close(); cout.Close() })
	o.In, o.Out = sin, sout
	o.Open = func(_ context.Context, asker approval.Asker, client string, changed func()) (*session.Host, error) {
		return session.Open(session.Config{Workshop: w, Client: client, Gate: &approval.Gate{Asker: asker}, Changed: changed,
			Dial: func(context.Context, string) (io.ReadWriteCloser, error) {
				*dialled++
				return nil, errors.New("the workshop isn't up")
			}}, worker)
	}
	r := newRaw(t, cin, cout)
	go func() { r.done <- Run(t.Context(), o) }()
	return r
}

// A real Host, whose workers can't be reached: what is decided on the host. With
// workers that can: e2e/mcp_test.go.
func TestHost(t *testing.T) {
	fsys := fstest.MapFS{
		"workshop.yaml":       {Data: []byte("workshop:\n  name: t\n  container: {image: 'i:1'}\n  workers: [builder, reviewer]\n")},
		"workers/builder.md":  {Data: []byte("---\nname: builder\ndescription: builds\nallowed-tools: Read, Write, Bash(git:*)\n---\nBuild.\n")},
		"workers/reviewer.md": {Data: []byte("---\nname: reviewer\ndescription: reviews\nallowed-tools: Read\n---\nReview.\n")},
	}
	dialled := 0
	unreached := make(chan string, 1)
	r := serve(t, fsys, "builder", Options{Unreachable: func(e *session.UnreachableError) { unreached <- e.Error() }}, &dialled)
	r.hello(`{"elicitation":{}}`)
	r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	list := string(r.of(1).Result)
	for name, want := range map[string]bool{"read_file": true, "write_file": true, "shell": true, "edit_file": false, "delegate_reviewer": false, "reviewer__read_file": false} {
		if got := strings.Contains(list, `"name":"`+name+`"`); got != want {
			t.Errorf("%s is offered: %v", name, got)
		}
	}
	for _, x := range []struct {
		call, want string
		code       int
	}{
		{call(2, "edit_file", `{"path":"x","old_string":"a","new_string":"b"}`), "", -32602},
		{call(2, "reviewer__read_file", `{"path":"x"}`), "", -32602},
		{call(2, "shell", `{"argv":["rm","-r","/"]}`), `"isError":true`, 0},
		{call(2, "shell", `{"command":"git log; rm -r /"}`), `"isError":true`, 0},
		{call(2, "read_file", `{"path":7}`), `"isError":true`, 0},
		{call(2, "read_file", `{"path":"x"}`), `"the worker builder doesn't run, or can't be reached: tell the person, who can read why in the log of this server"`, 0},
	} {
		r.send(x.call)
		m := r.next() // nobody is asked
		code := 0
		if m.Error != nil {
			code = m.Error.Code
		}
		if m.Method != "" || code != x.code || !strings.Contains(string(m.Result), x.want) {
			t.Errorf("%s\n%s %s %+v", x.call, m.Method, m.Result, m.Error)
		}
	}
	r.in.Close()
	select {
	case err := <-r.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	if got, want := <-unreached, "the worker builder can't be reached: the workshop isn't up"; got != want {
		t.Errorf("the person is told %q, want %q", got, want)
	}
	if dialled == 0 {
		t.Error("no worker was dialled")
	}
}

// maxList is how many bytes of JSON the list of a worker's six tools may take:
// each model of each client reads it with each of its questions.
const maxList = 4000

// The list is short; output schemas are listed on request alone.
func TestListIsShort(t *testing.T) {
	fsys := fstest.MapFS{
		"workshop.yaml":      {Data: []byte("workshop:\n  name: t\n  container: {image: 'i:1'}\n  workers: [builder]\n")},
		"workers/builder.md": {Data: []byte("---\nname: builder\ndescription: builds\nallowed-tools: Read, Write, Edit, Glob, Grep, Bash\n---\nBuild.\n")},
	}
	for _, structured := range []bool{false, true} {
		dialled := 0
		r := serve(t, fsys, "builder", Options{Structured: structured}, &dialled)
		r.hello(`{}`)
		r.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		list := string(r.of(1).Result)
		if n := strings.Count(list, `"inputSchema":`); n != 6 {
			t.Fatalf("%d tools, want 6: %s", n, list)
		}
		want := 0
		if structured {
			want = 6
		} else if len(list) > maxList {
			t.Errorf("the list has %d bytes, want at most %d:\n%s", len(list), maxList, list)
		}
		if got := strings.Count(list, `"outputSchema":`); got != want {
			t.Errorf("structured %v: %d output schemas, want %d", structured, got, want)
		}
		r.in.Close()
		<-r.done
	}
}
