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

	"github.com/llmdo/workshop/e2e/scenario"
)

// tokens is a server of tokens, and the host that takes them: each is another one, and the
// host refuses those that it was told to.
type tokens struct {
	mu      sync.Mutex
	made    int
	refused int           // tokens up to this one
	lasts   time.Duration // how long the first is good once there is a second; 0: until it is refused
	seen    []string
	next    chan struct{} // what a stream waits for
}

func token(n int) string { return fmt.Sprintf("token-%d-9c", n) }

// make answers each request with another token.
func (k *tokens) make(w http.ResponseWriter, _ *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	if k.made == 2 && k.lasts > 0 {
		time.AfterFunc(k.lasts, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.refused = 1
		})
	}
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

// tokenServer is the workshop of credentialed, whose credential is a token that a command
// gets from a server, with the shortest lifetime that there is.
func tokenServer(t *testing.T, intent string) (s *scenario.Scenario, k *tokens, flags []string) {
	needs(t, "curl")
	s, _, name, _, flags := credentialed(t, intent)
	k = &tokens{next: make(chan struct{})}
	t.Cleanup(s.Internet.Site("allowed.example.org", k))
	server := httptest.NewServer(http.HandlerFunc(k.make))
	t.Cleanup(server.Close)
	dir := filepath.Dir(flags[1])
	command := userFile(t, dir, "token.sh", "#!/bin/sh\nexec curl -sSf "+server.URL+"\n")
	userFile(t, dir, filepath.Base(flags[1]), name+": {command: ["+command+"], hosts: [allowed.example.org], ttl: 1m}\n")
	if err := os.Chmod(command, 0o700); err != nil {
		t.Fatal(err)
	}
	return s, k, flags
}

// stream begins a request that the host ends with k.next, and returns what waits for that
// and checks what came.
func (k *tokens) stream(s *scenario.Scenario) (end func()) {
	s.Helper()
	stream := s.Command(s.TB.Context(), "exec", "worker", "--", "curl", "-sSN", "http://127.0.0.1:600/repos/stream")
	out, err := stream.StdoutPipe()
	if err == nil {
		err = stream.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	begin := make([]byte, len("begin\n"))
	if _, err := io.ReadFull(out, begin); err != nil || string(begin) != "begin\n" {
		s.Fatalf("the stream begins with %q, %v", begin, err)
	}
	return func() {
		s.Helper()
		close(k.next)
		rest, _ := io.ReadAll(out)
		if err := stream.Wait(); err != nil || string(rest) != "end\n" {
			s.Errorf("the stream ends with %q, %v", rest, err)
		}
	}
}

// B36: a token is made anew before the end of its lifetime: no request fails for it, a stream
// goes on, and the older one is sent no more.
func TestB36_Refreshed(t *testing.T) {
	scenario.Once(t, "the clock of the process that leases decides, on any engine")
	s, k, flags := tokenServer(t, "each second a worker sends a request, while its token is replaced and the older one is refused two seconds later; none fails")
	k.lasts = 2 * time.Second
	agreed(s, flags)
	k.take()
	end := k.stream(s)
	var seen []string
	began, after := time.Now(), 0
	for ; after < 5 && time.Since(began) < 70*time.Second; time.Sleep(time.Second) {
		s.Sees("worker", reposOK)
		now, made := k.take()
		seen = append(seen, now...)
		if made > 1 {
			after++
		}
	}
	end()
	at := slices.Index(seen, token(2))
	if _, made := k.take(); made != 2 || at < 10 || at > len(seen)-3 || slices.Contains(seen[at:], token(1)) || slices.Contains(seen, "") {
		t.Errorf("%d tokens were made after %v, and the host got %q; want the first, then the second", made, time.Since(began), seen)
	}
}

// B36: a token that its host refuses is made anew by its command, once a minute at most; the
// older one is sent no more, and what runs with it goes on.
func TestB36_TokenServer(t *testing.T) {
	s, k, flags := tokenServer(t, "a token of a command is replaced in the middle of a stream, which goes on; later requests carry the new one, and nothing the older one")
	agreed(s, flags)
	k.take()
	s.Sees("worker", reposOK)
	if seen, made := k.take(); !slices.Equal(seen, []string{token(1)}) || made != 1 {
		t.Errorf("the host got %q, and %d tokens were made", seen, made)
	}

	end := k.stream(s)

	// The host refuses the token: it is replaced while the stream goes on.
	k.refuse()
	k.take()
	s.Sees("worker", "http http://127.0.0.1:600/repos/x -> 401")
	s.Eventually("the new token is sent", func() bool { return s.Probe("worker", reposOK)[0].OK })
	seen, made := k.take()
	if at := slices.Index(seen, token(2)); at < 1 || made != 2 || slices.ContainsFunc(seen[:at], func(got string) bool { return got != token(1) }) || slices.ContainsFunc(seen[at:], func(got string) bool { return got != token(2) }) {
		t.Errorf("the host got %q, and %d tokens were made; want 1, then 2", seen, made)
	}
	end()

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
