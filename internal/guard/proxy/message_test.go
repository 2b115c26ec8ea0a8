package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/guard/buffers"
)

// pieces gives one piece with each read, as packets come.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// A response reaches the client as it was sent, wherever packets begin and end.
func TestResponseInPieces(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 1000)
	for _, c := range []struct {
		name, body string
		pieces     pieces
	}{
		{"at once", "hello", pieces{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"}},
		{"the body after the head", "hello", pieces{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"}},
		{"byte by byte", "hello", pieces{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "h", "e", "l", "l", "o"}},
		{"the head in two", "hello", pieces{"HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\nhe", "llo"}},
		{"long", long, pieces{"HTTP/1.1 200 OK\r\nContent-Length: 16000\r\n\r\n" + long[:100], long[100:5000], long[5000:5001], long[5001:]}},
		{"chunked", "hello", pieces{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\n", "he", "llo\r\n", "0\r\n\r\n"}},
		{"to the end", "hello", pieces{"HTTP/1.0 200 OK\r\n\r\n", "he", "llo"}},
	} {
		for _, proto := range []string{"HTTP/1.0", "HTTP/1.1"} {
			req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET / " + proto + "\r\nHost: a.example\r\n\r\n")))
			if err != nil {
				t.Fatal(err)
			}
			var sent bytes.Buffer
			w, from := bufio.NewWriter(&sent), append(pieces(nil), c.pieces...)
			r := bufio.NewReader(&flusher{from: &from, to: w})
			resp, err := http.ReadResponse(r, req)
			if err != nil {
				t.Fatal(c.name, err)
			}
			if err := writeResponse(w, resp, req, true, new(place), buffers.Small); err != nil {
				t.Fatal(c.name, err)
			}
			got, err := http.ReadResponse(bufio.NewReader(&sent), req)
			if err != nil {
				t.Fatal(c.name, err)
			}
			body, err := io.ReadAll(got.Body)
			if err != nil || string(body) != c.body {
				t.Errorf("%s, %s: %d bytes, %.80q, %v", c.name, proto, len(body), body, err)
			}
		}
	}
}
