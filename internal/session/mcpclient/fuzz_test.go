package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// Whatever a server sends: bounded, and what comes out is what a client may see.
func FuzzConn(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"w1","progress":1}}`,
		`{"jsonrpc":"2.0","id":"a","method":"roots/list"}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "log\n\n[1]\n{", `{"jsonrpc":"2.0","id":{},"result":1}`, `{"id":1,"result":{"id":2}}`,
	} {
		f.Add([]byte(s + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newConn(bytes.NewReader(data), nopCloser{io.Discard}, func() {})
		defer c.Close()
		result, forget := c.expect("w1", "{}", func(Progress) {})
		defer forget()
		c.asked[int64(1)] = "w1"
		n := 0
		for {
			m, err := c.Read(t.Context())
			if err != nil {
				break
			}
			if n++; m == nil || n > 1 {
				t.Fatalf("the SDK gets %v, which wasn't asked for", m)
			}
		}
		if b := result(); b != nil && !json.Valid(b) {
			t.Fatalf("%q", b)
		}
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nb\r\n\nlong long long line\nrest"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 16
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		var got []byte
		for {
			line, err := readLine(r, most)
			if err != nil {
				return
			}
			if len(line) > most || bytes.ContainsAny(line, "\n") {
				t.Fatalf("%q", line)
			}
			got = append(got, line...)
			if len(got) > len(data) {
				t.Fatal("more than there is")
			}
		}
	})
}

func FuzzTool(f *testing.F) {
	for _, s := range badTools {
		if len(s) < 1000 {
			f.Add([]byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := take(data)
		if err != nil {
			return
		}
		var s jsonschema.Schema
		if !word(x.Name, MaxToolName) || len(x.Description) > MaxDescription || len(x.Title) > MaxTitle || json.Unmarshal(x.InputSchema, &s) != nil || s.Type != "object" || depthOf(x.InputSchema) > MaxSchemaDepth {
			t.Fatalf("%+v", x)
		}
	})
}

func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1}}`, `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":"AA=="}}],"isError":true}`, `{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}`, `{"content":null}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := takeResult(data)
		if err != nil {
			return
		}
		if len(r.Content) == 0 || len(r.Content) > MaxBlocks || r.Structured != nil && !json.Valid(r.Structured) {
			t.Fatalf("%+v", r)
		}
		for _, b := range r.Content {
			if again, err := takeBlock(b); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("%s: %s, %v", b, again, err)
			}
		}
	})
}
