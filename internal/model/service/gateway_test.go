package service

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestGateway: a stream comes as it is made, the server hears nothing that is refused, and
// one that is gone is said.
func TestGateway(t *testing.T) {
	asked := 0
	next := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Host != "localhost" || r.Header.Get("Authorization") != "Bearer key" {
			t.Errorf("the server hears %s, %v", r.Host, r.Header)
		}
		_, _ = io.WriteString(w, "data: one\n\n")
		w.(http.Flusher).Flush()
		<-next
		_, _ = io.WriteString(w, "data: two\n\n")
	}))
	defer server.Close()
	there := true
	dial := func(ctx context.Context) (net.Conn, error) {
		if !there {
			return nil, io.ErrUnexpectedEOF
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	host := httptest.NewServer(NewGateway("key", dial, log.New(io.Discard, "", 0)))
	defer host.Close()
	ask := func(header http.Header) *http.Response {
		t.Helper()
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, host.URL+"/v1/chat/completions", strings.NewReader("{}"))
		q.Header = header
		if name := header.Get("Host"); name != "" {
			q.Host = name
		}
		a, err := host.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Body.Close() })
		return a
	}
	for name, c := range map[string]struct {
		header http.Header
		code   int
	}{
		"no key":              {http.Header{}, 401},
		"a part of the key":   {http.Header{"Authorization": {"Bearer ke"}}, 401},
		"another form":        {http.Header{"Authorization": {"Basic key"}}, 401},
		"a key of no bytes":   {http.Header{"Authorization": {"Bearer "}}, 401},
		"a page":              {http.Header{"Authorization": {"Bearer key"}, "Origin": {"null"}}, 403},
		"a page's navigation": {http.Header{"Authorization": {"Bearer key"}, "Sec-Fetch-Site": {"cross-site"}}, 403},
		"another host":        {http.Header{"Authorization": {"Bearer key"}, "Host": {"example.org"}}, 403},
		"a host that begins":  {http.Header{"Authorization": {"Bearer key"}, "Host": {"localhost.example.org:80"}}, 403},
	} {
		if a := ask(c.header); a.StatusCode != c.code {
			t.Errorf("%s: %d, want %d", name, a.StatusCode, c.code)
		}
	}
	if asked > 0 {
		t.Errorf("the server was asked %d times", asked)
	}
	a := ask(http.Header{"Authorization": {"Bearer key"}})
	first := make([]byte, 11)
	late := time.AfterFunc(20*time.Second, func() { close(next) })
	if _, err := io.ReadFull(a.Body, first); err != nil || string(first) != "data: one\n\n" {
		t.Errorf("first %q, %v", first, err)
	}
	if !late.Stop() {
		t.Error("the first word waits for the second")
	} else {
		close(next)
	}
	if rest, err := io.ReadAll(a.Body); err != nil || string(rest) != "data: two\n\n" {
		t.Errorf("then %q, %v", rest, err)
	}
	there = false
	server.CloseClientConnections()
	if a := ask(http.Header{"Authorization": {"Bearer key"}}); a.StatusCode != 502 {
		t.Errorf("without a server: %d", a.StatusCode)
	}
}
