package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

// tape is a connection that gives its bytes and takes any.
type tape struct {
	io.Reader
	took *bytes.Buffer
}

func (t tape) Write(p []byte) (int, error) {
	if t.took != nil {
		t.took.Write(p)
	}
	return len(p), nil
}
func (tape) Close() error { return nil }

var seeds = [][]byte{
	nil,
	request(1, "echo", `{"text":"x"}`),
	bytes.Join([][]byte{request(1, "cat", "{}"), data(1, Stdin, "abc"), data(1, Stdin, ""), request(2, "yes", "[]")}, nil),
	bytes.Join([][]byte{request(1, "hang", "{}"), msg(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`), creditFrame(1, Stdout, 9)}, nil),
	msg(`{"jsonrpc":"2.0","id":1,"result":{"text":"\u00e9\n"}}`),
	bytes.Join([][]byte{data(1, Stdout, "abc"), data(1, Stderr, ""), msg(`{"jsonrpc":"2.0","method":"$/progress","params":{"id":1}}`), msg(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`)}, nil),
	msg(`[{}]`), msg(`{"id":1,"id":2}`), header(kindMessage, MaxMessage), header(kindMessage, MaxMessage+1), header(7, 7),
	request(1, "echo", deep(70)), msg("{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}"),
	msg(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`),
}

// FuzzServe: whatever a client sends, the server ends without a panic, answers
// each call once at most, and only calls that were made.
func FuzzServe(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var took bytes.Buffer
		_ = Serve(context.Background(), tape{bytes.NewReader(b), &took}, methods)
		answered := map[uint32]bool{}
		for out := took.Bytes(); len(out) > 0; {
			if len(out) < headerSize {
				t.Fatalf("a part of a frame was sent: %q", out)
			}
			n := int(out[1])<<24 | int(out[2])<<16 | int(out[3])<<8 | int(out[4])
			if len(out) < headerSize+n {
				t.Fatalf("a part of a frame was sent: %q", out)
			}
			body := out[headerSize : headerSize+n]
			if out[0] == kindMessage {
				e, fault := parseEnvelope(body)
				if fault != nil {
					t.Fatalf("%s: %v", body, fault)
				}
				if e.method == "" && (answered[e.id] || e.id == 0 && !e.null) {
					t.Fatalf("call %d was answered twice", e.id)
				}
				answered[e.id] = true
			}
			out = out[headerSize+n:]
		}
	})
}

// FuzzClient: whatever a server sends, a client's calls end, without a panic.
func FuzzClient(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, w := io.Pipe()
		c := NewClient(tape{r, nil})
		o, err := c.Start(context.Background(), "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = w.Write(b)
			_ = w.Close()
		}()
		n, _ := io.Copy(io.Discard, o.Stream(Stdout))
		if n > int64(len(b)) {
			t.Errorf("%d bytes came of %d", n, len(b))
		}
		_ = o.Stream(Stderr).Close()
		var result any
		_ = o.Wait(&result)
		<-c.Done()
		for range o.Notified() {
		}
		if c.Err() == nil {
			t.Error("the connection ended without a reason")
		}
		_ = r.Close()
		_ = c.Close()
	})
}

// FuzzEnvelope: the reader of envelopes takes what encoding/json takes, to the
// depth, and finds the same in it.
func FuzzEnvelope(f *testing.F) {
	for _, s := range seeds {
		if len(s) > headerSize {
			f.Add(s[headerSize:])
		}
	}
	for _, s := range []string{
		"-0.5e+10", "01", "1.", "1e", "-", `"\u12"`, `"\x"`, "\"\x1f\"", `"0123456\"8"`, "\"01234567\x00\"", `[1,]`, `{"a":1,}`, `{"a" 1}`, "nul", "tru e",
		" [ { \"a\" : null } , true , false ] ", `"` + strings.Repeat("x", 30) + `\\"`, `{"jsonrpc":"2.0","id":4294967295,"method":"a","params":{"id":1}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		end, err := skipValue(b, skipSpace(b, 0), 0)
		ok := err == nil && skipSpace(b, end) == len(b)
		if valid := json.Valid(b); ok && !valid || valid && !ok && err != errDepth {
			t.Errorf("%q: %v here, %v for encoding/json (%v)", b, ok, valid, err)
		}
		if ok && tooDeep(b) {
			t.Errorf("%q is taken and too deep", b)
		}
		e, fault := parseEnvelope(b)
		if fault != nil {
			return
		}
		var r struct {
			Version string          `json:"jsonrpc"`
			ID      *uint32         `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		if err := json.Unmarshal(b, &r); err != nil || !utf8.Valid(b) {
			t.Fatalf("%q was taken: %v", b, err)
		}
		if r.Version != "2.0" || r.Method != e.method || !bytes.Equal(r.Params, e.params) || !bytes.Equal(r.Result, e.result) || !bytes.Equal(r.Error, e.err) || r.ID != nil && *r.ID != e.id || r.ID == nil && e.id != 0 {
			t.Errorf("%q: %+v, but %+v for encoding/json", b, e, r)
		}
		_, _ = callOf(e.params)
	})
}
