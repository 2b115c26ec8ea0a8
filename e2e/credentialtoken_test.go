//go:build linux

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tokens is a server of tokens, and the host that takes them: each is another one, and the
// host refuses those that it was told to.
type tokens struct {
	mu      sync.Mutex
	made    int
	refused int // tokens up to this one
	seen    []string
	next    chan struct{} // what a stream waits for
}

func token(n int) string { return fmt.Sprintf("token-%d-9c", n) }

// make answers each request with another token.
func (k *tokens) make(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	fmt.Fprintln(w, token(k.made))
}

func (k *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	got := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	k.seen = append(k.seen, got)
	n := 0
	_, err := fmt.Sscanf(got, "token-%d-9c", &n)
	ok := err == nil && got == token(n) && n > k.refused && n <= k.made
	k.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/repos/stream" {
		fmt.Fprintln(w, "begin")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-k.next:
		case <-r.Context().Done():
			return
		}
	}
	fmt.Fprintln(w, "end")
}

// refuse has the host refuse all tokens that there are.
func (k *tokens) refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = k.made
}

// take returns the tokens that the host was sent, and how many were made.
func (k *tokens) take() (seen []string, made int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer func() { k.seen = nil }()
	return k.seen, k.made
}

// B36: a token that its host refuses is made anew by its command, once a minute at most; the
// older one is sent no more, and what runs with it goes on.
func TestB36_TokenServer(t *testing.T) {
	needs(t, "curl")
	s, _, name, _, flags := credentialed(t, "a token of a command is replaced in the middle of a stream, which goes on; later requests carry the new one, and nothing the older one")
	k := &tokens{next: make(chan struct{})}
	t.Cleanup(s.Internet.Site("allowed.example.org", k))
	server := httptest.NewServer(http.HandlerFunc(k.make))
	defer server.Close()
	dir := filepath.Dir(flags[1])
	command := userFile(t, dir, "token.sh", "#!/bin/sh\nexec curl -sSf "+server.URL+"\n")
	userFile(t, dir, filepath.Base(flags[1]), name+": {command: ["+command+"], hosts: [allowed.example.org], ttl: 1m}\n")
	if err := os.Chmod(command, 0o700); err != nil {
		t.Fatal(err)
	}
	agreed(s, flags)
	k.take()
	s.Sees("worker", reposOK)
	if seen, made := k.take(); !slices.Equal(seen, []string{token(1)}) || made != 1 {
		t.Errorf("the host got %q, and %d tokens were made", seen, made)
	}

	stream := s.Command(t.Context(), "exec", "worker", "--", "curl", "-sSN", "http://127.0.0.1:600/repos/stream")
	out, err := stream.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Start(); err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, len("begin\n"))
	if _, err := io.ReadFull(out, begin); err != nil || string(begin) != "begin\n" {
		t.Fatalf("the stream begins with %q, %v", begin, err)
	}

	// The host refuses the token: it is replaced while the stream goes on.
	k.refuse()
	k.take()
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 401")
	s.Eventually("the new token is sent", func() bool { return s.Probe("worker", reposOK)[0].OK })
	seen, made := k.take()
	if at := slices.Index(seen, token(2)); at < 1 || made != 2 || slices.ContainsFunc(seen[:at], func(got string) bool { return got != token(1) }) || slices.ContainsFunc(seen[at:], func(got string) bool { return got != token(2) }) {
		t.Errorf("the host got %q, and %d tokens were made; want 1, then 2", seen, made)
	}
	close(k.next)
	rest, _ := io.ReadAll(out)
	if err := stream.Wait(); err != nil || string(rest) != "end\n" {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}

	// Another 401 within the minute makes none, and there is no way back to the older one.
	k.refuse()
	for range 3 {
		s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 401")
	}
	time.Sleep(500 * time.Millisecond)
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 401")
	if seen, made := k.take(); made != 2 || len(seen) != 4 || slices.ContainsFunc(seen, func(got string) bool { return got != token(2) }) {
		t.Errorf("the host got %q, and %d tokens were made; want the second alone", seen, made)
	}
}
