//go:build linux

package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// processesOf are the processes of a worker as this machine sees them: what
// stands in /proc/PID/environ by what stands in /proc/PID/cmdline.
func processesOf(s *scenario.Scenario, worker string) map[string]string {
	s.Helper()
	out := map[string]string{}
	for _, pid := range s.Processes(worker) {
		p := strconv.Itoa(pid)
		line, err := os.ReadFile("/proc/" + p + "/cmdline")
		if err != nil {
			continue // has ended
		}
		environ, err := os.ReadFile("/proc/" + p + "/environ")
		if err != nil {
			continue
		}
		out[p+" "+strings.ReplaceAll(string(line), "\x00", " ")] = string(environ)
	}
	return out
}

// holds tells which of some values a text has.
func holds(text string, values map[string]string) (names []string) {
	for name, v := range values {
		if strings.Contains(text, v) {
			names = append(names, name)
		}
	}
	return names
}

// below looks for values in the files below a directory.
func below(t *testing.T, dir string, values map[string]string, but ...string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		for _, b := range but {
			if strings.HasSuffix(path, b) {
				return nil
			}
		}
		if i, err := d.Info(); err != nil || i.Size() > 1<<20 {
			return nil
		}
		b, _ := os.ReadFile(path)
		if names := holds(string(b), values); len(names) > 0 {
			t.Errorf("%s has %v", path, names)
		}
		return nil
	})
}

func TestB44_KeysStayOnTheHost(t *testing.T) {
	s := quiet(scenario.At(t, "what the host's environment, .env and home hold is in no process, no file and no session of a worker, and in nothing that is generated", map[string]string{
		"workshop.yaml": `workshop:
  name: keys
  container:
    image: host
    network: none
    mounts: ["./src:/workspace/src", "./out:/workspace/out:rw"]
    env: {LEVEL: "${E2E_LEVEL}"}
  workers: [worker]
  mcp: {notes: {command: perl, args: [/workspace/src/notes.pl]}}
`,
		"workers/worker.md": "---\nname: worker\ntools: Read, Bash, mcp__notes\nmodel: anthropic:claude\n---\nx\n",
		"src/notes.pl":      notesServer,
		"out/.keep":         "",
		".env":              "DOTENV_API_KEY=key-dotenv-71c0\n",
	}))
	keys := map[string]string{"DOTENV_API_KEY": "key-dotenv-71c0", "a file of the home": "key-home-71c0"}
	for i, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "HTTPS_PROXY_PASSWORD", "SSH_AUTH_SOCK", "ANY_OTHER"} {
		keys[name] = fmt.Sprintf("key-%d-71c0", i)
		s.Env = append(s.Env, name+"="+keys[name])
	}
	home := s.TempDir()
	state := s.TempDir()
	s.Env = append(s.Env, "HOME="+home, "XDG_STATE_HOME="+state, "E2E_LEVEL=level-71c0")
	files := []string{".claude.json", ".anthropic/key", ".netrc", ".config/openai/key"}
	for _, name := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(keys["a file of the home"]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.Up()

	// Nothing that our programs write anywhere holds one: the engine's socket,
	// the session, the audit, generated files.
	const writes = "write,writev,pwrite64,pwritev,sendto,sendmsg,sendmmsg"
	for _, args := range [][]string{
		{"up"}, {"compile"}, {"ps"},
		{"call", "--approve-all", "worker", "shell", "command=env; echo in-the-worker"},
		{"call", "--approve-all", "worker", "mcp__notes__get"},
		{"exec", "worker", "--", "sh", "-c", "env; echo in-the-worker"},
		{"tools", "--approve-all", "worker"},
	} {
		d, log := traced(t, s, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`+"\n", writes, args...)
		if d.Code != 0 || strings.Contains(args[len(args)-1], "in-the-worker") && !strings.Contains(log, "echo in-the-worker") || args[len(args)-1] == "env; echo in-the-worker" && !strings.Contains(d.Out, "LEVEL=level-71c0") {
			t.Errorf("%q: code %d\n%s%s", args, d.Code, d.Out, d.Err)
		}
		if names := holds(log+d.Out+d.Err, keys); len(names) > 0 {
			t.Errorf("%q writes %v", args, names)
		}
	}

	// Every process of the worker, with a server, a tool and an exec under way.
	c := newRPC(t, s, "--approve-all", "worker")
	if text, ok := c.call("mcp__notes__get", `{}`); !ok {
		t.Fatal(text)
	}
	if text, ok := c.call("shell", `{"command": "sleep 4711 >/dev/null 2>&1 &"}`); !ok {
		t.Fatal(text)
	}
	s.Expect(0, "exec", "worker", "--", "sh", "-c", "sleep 4712 >/dev/null 2>&1 &")
	levels, seen := 0, ""
	for line, environ := range processesOf(s, "worker") {
		if names := holds(line+environ, keys); len(names) > 0 {
			t.Errorf("%s has %v in its environment", line, names)
		}
		if strings.Contains(environ, "LEVEL=level-71c0") {
			levels++
		}
		seen += line + "\n"
	}
	for _, part := range []string{"sleep 4711", "sleep 4712", "notes.pl", "gate"} {
		if !strings.Contains(seen, part) {
			t.Errorf("control: no process %s in\n%s", part, seen)
		}
	}
	if levels < 4 {
		t.Errorf("control: %d processes have what the file names", levels)
	}
	root := s.RootOf("worker")
	for _, dir := range []string{"run", "tmp", "scratch", "home", "root", "workspace", "opt/workshop", "dev/shm", "etc"} {
		below(t, filepath.Join(root, dir), keys)
	}
	for _, name := range files {
		s.Sees("worker", "read "+filepath.Join(home, name)+" -> ENOENT|EACCES")
	}
	below(t, filepath.Join(s.Dir, ".workshop"), keys)
	below(t, state, keys)
	for service := range s.Containers() {
		v := s.View(service)
		if names := holds(strings.Join(v.Env, "\n")+v.Rest+s.Logs(service), keys); len(names) > 0 {
			t.Errorf("the engine's view of %s has %v", service, names)
		}
	}
}

func TestB45_OnlyWhatTheFileShows(t *testing.T) {
	s := quiet(scenario.At(t, "a host value enters by ${…} where the file has it, and by a secret for the server that names it; generated files, labels and command lines have neither", map[string]string{
		"workshop.yaml": `workshop:
  name: values
  container:
    image: host
    network: none
    mounts: ["./src:/workspace/src", "./out:/workspace/out:rw"]
    env: {LEVEL: "${E2E_LEVEL}"}
    secrets: [{name: token, env: E2E_TOKEN}]
  workers: [{name: worker, container: {secrets: [token]}}, {name: other, container: {env: {LEVEL: none}, secrets: []}}]
  mcp:
    notes: {command: perl, args: [/workspace/src/notes.pl], env: {KIND: notes}, secrets: {NOTES_TOKEN: token}}
    plain: {command: perl, args: [/workspace/src/plain.pl]}
`,
		"workers/worker.md": "---\nname: worker\ntools: Bash, mcp__notes, mcp__plain\n---\nx\n",
		"workers/other.md":  "---\nname: other\ntools: Bash\n---\nx\n",
		"src/notes.pl":      notesServer,
		"src/plain.pl":      notesServer,
		"out/.keep":         "",
	}))
	const token, level, unnamed = "token-45ab90", "level-45ab90", "unnamed-45ab90"
	state := s.TempDir()
	s.Env = append(s.Env, "E2E_TOKEN="+token, "E2E_LEVEL="+level, "E2E_UNNAMED="+unnamed, "NOTES_TOKEN="+unnamed, "KIND="+unnamed, "XDG_STATE_HOME="+state)
	s.Expect(0, "compile")
	s.Up()
	c := newRPC(t, s, "--approve-all", "worker")
	for _, name := range []string{"mcp__notes__get", "mcp__plain__get"} {
		if text, ok := c.call(name, `{}`); !ok {
			t.Fatal(text)
		}
	}
	if text, ok := c.call("shell", `{"command": "sleep 4713 >/dev/null 2>&1 & env; cat /run/secrets/token"}`); !ok || !strings.Contains(text, token) || strings.Contains(text, "NOTES_TOKEN") || !strings.Contains(text, level) {
		t.Errorf("a tool of worker: %s", text)
	}
	if d := s.Run("call", "--approve-all", "other", "shell", "command=env; cat /run/secrets/token"); d.Code != 1 || strings.Contains(d.Out, "45ab90") {
		t.Errorf("a tool of other: %s", d.Out)
	}

	// The server that names the secret has it, under that name alone.
	servers := 0
	for line, environ := range processesOf(s, "worker") {
		switch named := strings.HasSuffix(line, " perl /workspace/src/notes.pl "); {
		case named:
			servers++
			if !strings.Contains(environ, "NOTES_TOKEN="+token) || strings.Count(environ, token) != 1 || !strings.Contains(environ, "KIND=notes") {
				t.Errorf("%s has %q", line, environ)
			}
		case strings.Contains(environ, token):
			t.Errorf("%s has the secret in its environment", line)
		}
		if strings.Contains(line+environ, unnamed) || strings.Contains(line, token) || strings.Contains(line, level) {
			t.Errorf("%s %q", line, environ)
		}
	}
	if servers != 1 {
		t.Errorf("control: %d processes are the server", servers)
	}

	// Generated files keep the name; the engine gets the value where it must, and
	// the grant has the secret's name.
	values := map[string]string{"the secret": token, "the value": level, "what nobody names": unnamed}
	below(t, filepath.Join(s.Dir, ".workshop"), values)
	below(t, state, values, "state.json") // the namespace engine's view, below
	generated, err := filepath.Glob(filepath.Join(s.Dir, ".workshop", "*", "compose.yaml"))
	if err != nil || len(generated) != 1 {
		t.Fatal(generated, err)
	}
	b, err := os.ReadFile(generated[0])
	if err != nil || !strings.Contains(string(b), "${E2E_LEVEL:?}") || !strings.Contains(string(b), "NOTES_TOKEN") {
		t.Errorf("%v\n%s", err, b)
	}
	for service := range s.Containers() {
		v := s.View(service)
		grant := strings.Join(s.Args(service), " ")
		if service == "worker" && !strings.Contains(grant, `"secrets":{"NOTES_TOKEN":"token"}`) {
			t.Errorf("the grant: %s", grant)
		}
		if names := holds(v.Rest+s.Logs(service), values); len(names) > 0 {
			t.Errorf("the engine's view of %s has %v", service, names)
		}
		if got := strings.Contains(strings.Join(v.Env, "\n"), "LEVEL="+level); got != (service == "worker") || len(holds(strings.Join(v.Env, "\n"), map[string]string{"the secret": token, "what nobody names": unnamed})) > 0 {
			t.Errorf("%s has %q", service, v.Env)
		}
	}
}
