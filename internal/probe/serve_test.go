//go:build linux

package probe

import (
	"bufio"
	"encoding/json"
	"io"
	"testing"
)

// TestServe: what listens answers one request after the other.
func TestServe(t *testing.T) {
	out, in := io.Pipe()
	go Main([]string{"serve 127.0.0.1:0 text=here"}, in, io.Discard)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var started Result
	if err := json.Unmarshal(line, &started); err != nil || started.Seen != "listening" {
		t.Fatalf("%s: %v", line, err)
	}
	for _, method := range []string{"GET", "POST"} {
		got, code := run(t, "http http://"+started.Detail+"/ method="+method+" -> 200")
		if code != 0 || got[0].Detail != "here" {
			t.Errorf("%s: code %d, %+v", method, code, got)
		}
	}
}
