package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve starts one with these flags, on a socket, and returns a client of it.
func serve(t *testing.T, flags ...string) func(method, path, key, body string) (int, string, http.Header) {
	t.Helper()
	dir := t.TempDir()
	model, socket := filepath.Join(dir, "m.gguf"), filepath.Join(dir, "x.sock")
	if err := os.WriteFile(model, []byte("GGUF\x03\x00\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run(append([]string{"-m", model, "--host", socket}, flags...)) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	for tries := 0; ; tries++ {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return func(method, path, key, body string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequest(method, "http://x"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		r.Header.Set("Origin", "https://page.example.org")
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.StatusCode, string(b), a.Header
	}
}

const question = `{"messages":[{"role":"user","content":"two words"}],"stream":STREAM,"stream_options":{"include_usage":true}}`

func TestAnswers(t *testing.T) {
	ask := serve(t, "--ctx-size", "512", "--offline", "--no-ui", "--no-slots")
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		says                     []string
	}{
		{"health", "GET", "/health", "", 200, []string{`"ok"`}},
		{"models", "GET", "/v1/models", "", 200, []string{`"m.gguf"`, "512"}},
		{"whole", "POST", "/v1/chat/completions", strings.Replace(question, "STREAM", "false", 1), 200, []string{`"You said: two words"`, `"completion_tokens":4`}},
		{"stream", "POST", "/v1/chat/completions", strings.Replace(question, "STREAM", "true", 1), 200, []string{`"content":" two"`, `"total_tokens":6`, "data: [DONE]\n"}},
		{"no messages", "POST", "/v1/chat/completions", "{}", 400, []string{"messages"}},
		{"no slots", "GET", "/slots", "", 501, []string{"--slots"}},
		{"unknown", "GET", "/other", "", 404, []string{"File Not Found"}},
		{"hostile", "POST", "/test/write?of=/proc/x", "", 200, []string{"no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, head := ask(c.method, c.path, "", c.body)
			if status != c.status {
				t.Errorf("status %d, want %d", status, c.status)
			}
			for _, want := range c.says {
				if !strings.Contains(body, want) {
					t.Errorf("no %s in %s", want, body)
				}
			}
			if got := head.Get("Access-Control-Allow-Origin"); got != "*" {
				t.Errorf("allowed origin %q, want *, as theirs unless told", got)
			}
		})
	}
}

func TestKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("# one a line\n\nsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := serve(t, "--api-key-file", file, "--cors-origins", "localhost")
	for path, keys := range map[string]map[string]int{
		"/v1/models": {"": 200, "other": 200},
		"/props":     {"": 401, "other": 401, "# one a line": 401, "secret": 200},
	} {
		for key, want := range keys {
			status, _, head := ask("GET", path, key, "")
			if status != want {
				t.Errorf("%s with key %q: %d, want %d", path, key, status, want)
			}
			if got := head.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("%s: allowed origin %q, want none", path, got)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	model := at("m.gguf", []byte("GGUF\x03\x00\x00\x00"))
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no GGUF", []string{"-m", at("zip", []byte("PK\x03\x04longer than 8"))}, "invalid magic"},
		{"short", []string{"-m", at("short", []byte("GG"))}, "invalid magic"},
		{"version", []string{"-m", at("one", bytes.Replace([]byte("GGUF\x03\x00\x00\x00"), []byte{3}, []byte{1}, 1))}, "invalid magic or version"},
		{"no model", []string{"-m", filepath.Join(dir, "none")}, "no such file"},
		{"unknown flag", []string{"-m", model, "--tools", "all"}, "not defined"},
		{"no key file", []string{"-m", model, "--api-key-file", filepath.Join(dir, "none")}, "failed to open file"},
		{"socket that is there", []string{"-m", model, "--host", at("there.sock", nil)}, "couldn't bind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := run(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}
