package guard

import (
	"io"
	"strings"
	"testing"
)

// TestRequestsOfOtherForms: a request says nothing but the host that the
// connection is to, whatever else the policy would allow (N8, N9).
func TestRequestsOfOtherForms(t *testing.T) {
	w := newWorld(t, restricted(t, "allowed.example.org"))
	for request, addr := range map[string]string{
		"GET / HTTP/1.1\r\nHost: allowed.example.org:443\r\n\r\n":                                           "198.51.100.10:80",
		"GET https://allowed.example.org/ HTTP/1.1\r\nHost: allowed.example.org\r\n\r\n":                    "127.0.0.1:536",
		"GET http://user:word@allowed.example.org/ HTTP/1.1\r\nHost: user:word@allowed.example.org\r\n\r\n": "127.0.0.1:536",
		"GET http://user@allowed.example.org/ HTTP/1.0\r\n\r\n":                                             "127.0.0.1:536",
	} {
		c := w.mustDial("room", "tcp", addr)
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "\r\n\r\nworkshop: ") {
			t.Errorf("%q: %q %v", request, answer, err)
		}
	}
}
