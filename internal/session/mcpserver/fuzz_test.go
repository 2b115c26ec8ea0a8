package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/llmdo/workshop/internal/session/approval"
)

func idForTest(n float64) jsonrpc.ID { id, _ := jsonrpc.MakeID(n); return id }

type sink struct{ bytes.Buffer }

func (*sink) Close() error { return nil }

// Whatever comes in on the client's side, the server ends when it ends, writes
// only JSON lines, and answers a ping that comes last.
func FuzzInput(f *testing.F) {
	first := fmt.Sprintf(hello, `{"elicitation":{}}`) + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for _, seed := range []string{
		"", "{}\n", "[]\n", "null", "\n\n", "{\"jsonrpc\":\"2.0\"}\n", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n",
		first + call(1, "echo", `{}`) + "\n", first + call(1, "echo", `{}`) + "\n" + call(1, "echo", `{}`) + "\n",
		first + call(1, "asks", `{}`) + "\n" + `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"answer":"once"}}}` + "\n",
		first + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n",
		first + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","_meta":{"progressToken":{}}}}` + "\n",
		first + `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}` + "\n",
		first + `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"x"}}` + "\n",
		first + `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":null}}` + "\n",
		first + `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}` + "\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		const last = "\n" + `{"jsonrpc":"2.0","id":"last of all","method":"ping"}` + "\n"
		if bytes.Contains(in, []byte("last of all")) || bytes.Contains(in, []byte("asks")) {
			t.Skip()
		}
		var out sink
		done := make(chan error, 1)
		go func() {
			done <- run(t.Context(), Options{In: io.NopCloser(io.MultiReader(bytes.NewReader(in), strings.NewReader(last))), Out: &out},
				func(_ context.Context, a approval.Asker, _ string, changed func()) (host, error) {
					return &stand{asker: a, changed: changed}, nil
				})
		}()
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			t.Fatal("it hangs")
		}
		answered := false
		for line := range bytes.Lines(out.Bytes()) {
			var m message
			if err := json.Unmarshal(line, &m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			answered = answered || m.ID == "last of all"
		}
		if !answered {
			t.Errorf("the ping isn't answered: %q", out.Bytes())
		}
	})
}

// The reader of lines keeps no more than a line may have, and loses none.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\n\nb\r\n c"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var want []string
		for _, l := range bytes.Split(in, []byte("\n")) {
			if l = bytes.TrimSpace(l); len(l) > 0 {
				want = append(want, string(l))
			}
		}
		l := newLines(bytes.NewReader(in))
		for i := 0; ; i++ {
			line, err := l.next()
			if err == io.EOF {
				if i != len(want) {
					t.Fatalf("%d lines of %d", i, len(want))
				}
				return
			}
			if err != nil || i >= len(want) || string(line) != want[i] {
				t.Fatalf("%q, %v", line, err)
			}
			_ = wellFormed(line)
		}
	})
}
