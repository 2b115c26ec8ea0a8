//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/lib/peercred"
)

// aModel is all that a GGUF file needs here; its sum is in the workshop.
const aModel = "GGUF\x03\x00\x00\x00of no weights"

// roomModel is a workshop with a model, whose image has a stub for llama-server.
type roomModel struct {
	*scenario.Scenario
	image, state string
}

func newRoomModel(t *testing.T, intent string) *roomModel {
	t.Helper()
	s := scenario.At(t, intent, nil)
	host, push := s.Registry()
	image := host + "/llama.cpp@" + push(host+"/llama.cpp:server", stubImage(t))
	m := &roomModel{s, image, filepath.Join(s.TempDir(), "state")}
	m.file("2G", sumOf(aModel))
	m.put(aModel)
	return m
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// file writes the workshop.
func (m *roomModel) file(memory, sum string) {
	m.Write("workshop.yaml", fmt.Sprintf(`workshop:
  name: model
  container: {image: host, mounts: [".:/workspace"]}
  workers: [{name: worker, tools: [shell]}]
  models:
    services:
      tiny: {image: %q, file: tiny.gguf, sha256: %s, context: 2048, resources: {memory: %s, cpu: 1, pids: 32}}
`, m.image, sum, memory))
}

// put puts a model into the user's directory of models.
func (m *roomModel) put(text string) {
	m.Helper()
	dir := filepath.Join(m.TempDir(), "data")
	m.Env = []string{"XDG_DATA_HOME=" + dir, "XDG_STATE_HOME=" + m.state}
	models := filepath.Join(dir, "workshop", "models")
	for _, err := range []error{os.MkdirAll(m.state, 0o700), os.MkdirAll(models, 0o755), os.WriteFile(filepath.Join(models, "tiny.gguf"), []byte(text), 0o644)} {
		if err != nil {
			m.Fatal(err)
		}
	}
	for _, path := range []string{m.state, dir, filepath.Dir(models), models, filepath.Join(models, "tiny.gguf")} {
		m.Give(path)
	}
}

// llmdo runs the program that has the verbs about models.
func (m *roomModel) llmdo(code int, args ...string) (out, errs string) {
	m.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := m.Program(ctx, filepath.Join(scenario.TheLab(m).Bin, "llmdo"), append([]string{"models"}, args...)...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		m.Fatalf("llmdo models %s: %v, want exit code %d\n%s%s", strings.Join(args, " "), err, code, &o, &e)
	}
	return o.String(), e.String()
}

// modelAt is how a program of this machine reaches the model.
type modelAt struct {
	URL    string `json:"url"`
	Socket string `json:"socket"`
	Key    string `json:"key"`
}

func (m *roomModel) url(args ...string) (at modelAt) {
	m.Helper()
	out, _ := m.llmdo(0, append([]string{"url", "tiny", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &at); err != nil {
		m.Fatal(err)
	}
	return at
}

// ask makes a request; 0: there is no answer.
func (at modelAt) ask(method, path, body string, header http.Header) (code int, text string) {
	c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if at.Socket != "" {
		c.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", at.Socket)
		}
	}
	q, err := http.NewRequest(method, strings.TrimSuffix(at.URL, "/v1")+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	q.Header = header.Clone()
	if host := q.Header.Get("Host"); host != "" {
		q.Host = host
	}
	a, err := c.Do(q)
	if err != nil {
		return 0, err.Error()
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		return 0, err.Error()
	}
	return a.StatusCode, string(b)
}

func (at modelAt) bearer() http.Header { return http.Header{"Authorization": {"Bearer " + at.Key}} }

// TestModel: a model's server has no network and writes nowhere, and a program of this machine
// reaches it with the key alone.
func TestModel(t *testing.T) {
	m := newRoomModel(t, "a model's server in a room of its own: no network, no rw mount; the host's clients reach it with its key, no worker, neighbour or page of a browser does; down ends it")
	m.Up()
	if _, errs := m.llmdo(0, "up"); !strings.Contains(errs, "tiny is ready") {
		t.Errorf("models up says %q", errs)
	}
	at := m.url()
	if code, text := at.ask("GET", "/v1/models", "", at.bearer()); code != 200 || !strings.Contains(text, `"tiny"`) {
		t.Errorf("the models: %d %s", code, text)
	}
	chat := `{"model": "tiny", "messages": [{"role": "user", "content": "hello"}], "stream": true}`
	if code, text := at.ask("POST", "/v1/chat/completions", chat, at.bearer()); code != 200 || !strings.HasPrefix(text, "data: ") || !strings.Contains(text, "[DONE]") {
		t.Errorf("a streamed answer: %d %.200s", code, text)
	}
	big := `{"model": "tiny", "messages": [{"role": "user", "content": "` + strings.Repeat("a word ", 1<<18) + `"}]}`
	if code, text := at.ask("POST", "/v1/chat/completions", big, at.bearer()); code == 0 {
		t.Errorf("a prompt of %d bytes: %s", len(big), text)
	}

	loopback := m.url("--loopback")
	if again := m.url("--loopback"); again != loopback || !strings.HasPrefix(loopback.URL, "http://127.0.0.1:") || loopback.Socket != "" {
		t.Errorf("its port is %+v, then %+v", loopback, again)
	}
	for _, at := range []modelAt{at, loopback} {
		other := at
		other.Key += "x"
		with := func(name, value string) http.Header {
			h := at.bearer()
			h.Set(name, value)
			return h
		}
		for name, c := range map[string]struct {
			header http.Header
			path   string
			code   int
		}{
			"with the key":           {at.bearer(), "/health", 200},
			"without":                {http.Header{}, "/v1/models", 401},
			"without, of its health": {http.Header{}, "/health", 401},
			"with another":           {other.bearer(), "/v1/models", 401},
			"of a page":              {with("Origin", "http://example.org"), "/v1/models", 403},
			"of a page of its own":   {with("Origin", "http://localhost"), "/v1/models", 403},
			"by a rebound name":      {with("Host", "rebound.example.org"), "/v1/models", 403},
		} {
			if code, text := at.ask("GET", c.path, "", c.header); code != c.code {
				t.Errorf("%s, %s: %d %s, want %d", at.URL, name, code, text, c.code)
			}
		}
	}
	if code, _ := loopback.ask("POST", "/.workshop/loopback", "", loopback.bearer()); code != 404 {
		t.Errorf("what is asked of the process answers on the port: %d", code)
	}
	_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(loopback.URL, "http://"), "/v1"))
	if l := listening(t, port); len(l) != 1 || l[0] != "127.0.0.1" {
		t.Errorf("it listens at %v", l)
	}
	info, err := os.Stat(at.Socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has %v, %v", info.Mode(), err)
	}

	// What it has, seen from outside: no interface but loopback, and no mount that it may write
	// but memory.
	pid := pidOf(t, "/app/llama-server")
	if names := interfacesOf(t, pid); !slices.Equal(names, []string{"lo"}) {
		t.Errorf("its interfaces are %v", names)
	}
	if rw := writableMounts(t, pid); len(rw) > 0 {
		t.Errorf("it may write to %v", rw)
	}

	// What a server that was taken over would try, and does on request.
	hostile := func(path string) string {
		code, text := at.ask("POST", path, "", at.bearer())
		return fmt.Sprint(code, " ", strings.TrimSpace(text))
	}
	for _, c := range []struct{ path, refused string }{
		{"/test/write?of=/app/x", "read-only file system"},
		{"/test/write?of=/models/tiny.gguf", "read-only file system"},
		{"/test/connect?of=198.51.100.10:80", "unreachable"},
	} {
		if got := hostile(c.path); !strings.Contains(got, c.refused) {
			t.Errorf("%s: %s, want %s", c.path, got, c.refused)
		}
	}
	// No worker reaches it: neither its port nor its socket is there.
	if got := m.Run("exec", "worker", "--", "sh", "-c", "cat /proc/net/tcp; ls -R /run 2>&1"); strings.Contains(got.Out, "1F90") || strings.Contains(got.Out, "model") {
		t.Errorf("the worker sees it: %s", got.Out)
	}

	if out, _ := m.llmdo(0, "ls"); !strings.Contains(out, "ready") {
		t.Errorf("models ls: %s", out)
	}
	m.Expect(0, "down")
	if code, _ := at.ask("GET", "/health", "", at.bearer()); code != 0 {
		t.Errorf("after down it answers %d", code)
	}
	m.Eventually("its port is closed", func() bool { return len(listening(t, port)) == 0 })
	if out, _ := m.llmdo(0, "ls"); !strings.Contains(out, "down") {
		t.Errorf("models ls: %s", out)
	}
	if left := m.Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestModelFiles: up refuses a model that isn't what the workshop says, and starts nothing.
func TestModelFiles(t *testing.T) {
	m := newRoomModel(t, "up refuses a model that is missing, another, too large for its server's memory, or none, and starts nothing; a server that ends is said with its last words")
	refused := func(says string) {
		t.Helper()
		d := m.Expect(4, "up")
		if !strings.Contains(d.Err, says) || !strings.Contains(d.Err, "workshop.yaml:7:") {
			t.Errorf("up says %s, want %s", d.Err, says)
		}
		if _, errs := m.llmdo(4, "up", "tiny"); !strings.Contains(errs, says) {
			t.Errorf("models up says %s, want %s", errs, says)
		}
		if left := m.Leftovers(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	m.put("GGUF\x03\x00\x00\x00with other weights")
	refused("has another sha256")
	m.put("PK\x03\x04no model")
	refused("is not a GGUF file")
	m.put(aModel)
	if err := os.Truncate(filepath.Join(strings.TrimPrefix(m.Env[0], "XDG_DATA_HOME="), "workshop/models/tiny.gguf"), 32<<20); err != nil {
		t.Fatal(err)
	}
	m.file("32M", sumOf(aModel))
	refused("the model has 32M, and its server may have 32M")
	m.file("2G", sumOf(aModel))
	m.put(aModel)
	if err := os.Remove(filepath.Join(strings.TrimPrefix(m.Env[0], "XDG_DATA_HOME="), "workshop/models/tiny.gguf")); err != nil {
		t.Fatal(err)
	}
	refused("is not there")

	// What only the server knows: its last words are said, and nothing serves.
	bad := "GGUF\x63\x00\x00\x00of another version"
	m.put(bad)
	m.file("2G", sumOf(bad))
	if _, errs := m.llmdo(1, "up"); !strings.Contains(errs, "its server ended with exit code 1: error: failed to load model") {
		t.Errorf("models up says %s", errs)
	}
	slow := aModel + testutil.SlowModel
	m.put(slow)
	m.file("2G", sumOf(slow))
	if _, errs := m.llmdo(1, "up", "--wait-timeout", "3s"); !strings.Contains(errs, "its server isn't ready after 3s: ") {
		t.Errorf("models up of a model that never loads says %s", errs)
	}
	m.put(aModel)
	m.file("2G", sumOf(aModel))
	// The process that serves is killed: the server goes with it, and comes back.
	at := m.url()
	if pid := servesModel(t, at.Socket); pid == 0 {
		t.Error("nobody serves it")
	} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	m.Eventually("its server has ended", func() bool { out, _ := m.llmdo(0, "ls"); return strings.Contains(out, "stopped") })
	if again := m.url(); again.Key != at.Key {
		t.Error("the key changed without down")
	} else if code, text := again.ask("GET", "/v1/models", "", again.bearer()); code != 200 {
		t.Errorf("started again: %d %s", code, text)
	}
	// Another file of that name, which the workshop means now: its mount would still be the old one.
	second := aModel + " of the second"
	m.put(second)
	m.file("2G", sumOf(second))
	if _, errs := m.llmdo(0, "up"); !strings.Contains(errs, "recreated") {
		t.Errorf("models up of another file says %s", errs)
	}
	m.Expect(0, "-p", m.Project+"-model-tiny", "down")
	if keys := m.keys(); len(keys) > 0 {
		t.Errorf("after down of the room: %v", keys)
	}
	// Two commands at once make one room, with one key.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, errs := m.llmdo(0, "up"); strings.Contains(errs, "recreated") {
				t.Errorf("models up, twice at once, says %s", errs)
			}
		})
	}
	both.Wait()
	m.Up() // the directory's own workshop, of another name
	m.Expect(0, "down")
	if keys := m.keys(); len(keys) > 0 {
		t.Errorf("after down: %v", keys)
	}
	if left := m.Leftovers(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// keys are the files of keys that are there.
func (m *roomModel) keys() []string {
	m.Helper()
	keys, err := filepath.Glob(filepath.Join(m.state, "workshop/models/*.key"))
	if err != nil {
		m.Fatal(err)
	}
	return keys
}

// servesModel is the process that listens at a socket; 0: none.
func servesModel(t *testing.T, socket string) int {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cred, err := peercred.Of(c.(*net.UnixConn))
	if err != nil {
		t.Fatal(err)
	}
	return int(cred.Pid)
}

// stubImage has the stub at the place of llama.cpp's own image, and nothing else.
func stubImage(t *testing.T) []byte {
	t.Helper()
	stub := filepath.Join(t.TempDir(), "llama-server")
	if err := testutil.LLMStub(stub); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(stub)
	if err != nil {
		t.Fatal(err)
	}
	return layer("app/llama-server", 0o755, content)
}
