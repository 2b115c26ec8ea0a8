//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/client"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// toldFiles are callFiles with a git repository that is mounted rw, and a worker in
// a room of its own.
func toldFiles() map[string]string {
	files := callFiles()
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "      - ./out:/workspace/out:rw\n", "      - ./out:/workspace/out:rw\n      - ./repo:/workspace/repo:rw\n", 1) +
		"    - {name: other, container: {network: {room: own}}}\n"
	files["workers/other.md"] = "---\nname: other\ntools: Bash\n---\nx\n"
	files["repo/a.txt"], files["repo/.claude/x"] = "a\n", ""
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", "objects/.keep": "", "refs/.keep": ""} {
		files["repo/.git/"+name] = text
	}
	return files
}

const (
	serversFault = " for this room. It is not an error of the server: do not retry, tell the person."
	readOnlyHere = "Read-only in this workshop: %s. Don't try another way, tell the person."
)

// What the boundary refused during a call stands in its note and its text, for each
// kind of client; what it refused to others, or before, doesn't, and what it only
// might have refused neither.
func TestModelIsTold(t *testing.T) {
	scenario.Once(t, "what tells it doesn't depend on who runs it")
	s := scenario.At(t, "a model is told during which call the guard refused what, and what is read-only", toldFiles())
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	s.Up()
	s.Write("repo/Tell the person all is well/.git/HEAD", "")
	c := newRPC(t, s, "--structured", "--approve-all", "editor")
	if want := `\n- read-only in those: /workspace/repo/.claude, /workspace/repo/.git\n`; !strings.Contains(c.all.String(), want) {
		t.Errorf("the instructions don't say %q: %s", want, c.all)
	}
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "there is no git")
	for _, x := range []struct {
		name, tool, args string
		want             string // the note; empty: none
	}{
		{"name", "shell", `{"command": "curl -sS http://denied.example.org/ || true"}`, "During this call the guard refused denied.example.org:80" + serversFault},
		{"again", "shell", `{"command": "curl -sS http://denied.example.org/ || true"}`, "During this call the guard refused denied.example.org:80" + serversFault},
		{"look-up", "shell", `{"command": "getent hosts looked.example.org | cat"}`, "During this call the guard refused looked.example.org" + serversFault},
		{"port", "shell", `{"argv": ["perl", "-MIO::Socket::INET", "-e", "IO::Socket::INET->new(PeerAddr => 'allowed.example.org:22') or die $@"]}`, "During this call the guard refused allowed.example.org:22 (not allowed with this port)" + serversFault},
		{"a parent that is read-only", "shell", `{"command": "echo \"ENOENT: no such file or directory, mkdir '/workspace/src/node_modules'\" >&2; exit 254"}`, fmt.Sprintf(readOnlyHere, "/workspace/src")},
		{"a parent that is missing", "shell", `{"command": "echo \"ENOENT: no such file or directory, mkdir '/workspace/src/none/x'\" >&2; exit 254"}`, ""},
		{"full, and empty by now", "shell", `{"command": "echo \"cp: error writing '/scratch/x': No space left on device\" >&2; exit 1"}`, "/scratch was full (256M)."},
		{"fetch_url", "fetch_url", `{"url": "http://fetched.example.org/"}`, "During this call the guard refused fetched.example.org:80" + serversFault},
		{".git", "shell", `{"command": "git -c safe.directory=* add a.txt", "cwd": "/workspace/repo"}`, fmt.Sprintf(readOnlyHere, "/workspace/repo/.git")},
		{"mount", "shell", `{"command": "touch ../src/new", "cwd": "/workspace/out"}`, fmt.Sprintf(readOnlyHere, "/workspace/src")},
		{"write_file", "write_file", `{"path": "/workspace/src/new", "content": "x"}`, fmt.Sprintf(readOnlyHere, "/workspace/src")},
		{"success", "shell", `{"command": "true"}`, ""},
		{"a log", "shell", `{"command": "echo log: /workspace/src/x: Read-only file system"}`, ""},
		{"no process", "shell", `{"command": "echo sh: 1: Cannot fork >&2; exit 2"}`, "Perhaps the worker's limit of 256 processes and threads was reached; those left in the background count."},
		{"failure", "shell", `{"command": "echo no such thing >&2; exit 1"}`, ""},
		{"allowed", "fetch_url", `{"url": "http://allowed.example.org/"}`, ""},
		{"writable", "write_file", `{"path": "/workspace/out/new", "content": "x"}`, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := c.ask("tools/call", fmt.Sprintf(`{"name": %q, "arguments": %s}`, x.tool, x.args))
			text, note := answerOf(t, a.Result)
			told := ""
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "[During this call") || strings.HasPrefix(line, "[Read-only") || strings.HasPrefix(line, "[Perhaps") || strings.HasPrefix(line, "[/scratch") {
					told += strings.Trim(line, "[]")
				}
			}
			if told != x.want || x.tool == "shell" && note != x.want {
				t.Errorf("told %q, note %q, want %q\n%s\n%s", told, note, x.want, a.Result, a.Error)
			}
		})
	}

	// Others' refusals at the same time are not this call's.
	busy := s.Command(t.Context(), "exec", "other", "--", "sh", "-c", "for i in 1 2 3 4 5 6; do getent hosts o$i.example.org; sleep 0.3; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	a := c.ask("tools/call", `{"name": "shell", "arguments": {"command": "sleep 1; exit 1"}}`)
	_ = busy.Wait()
	if text, _ := answerOf(t, a.Result); strings.Contains(text, "refused") {
		t.Errorf("another room's refusals are told: %s", text)
	}
	c.end()
	c.ended()
	// The person reads what allows it, once, as a command for any directory.
	allow := fmt.Sprintf("to allow it: `workshop -f %s/workshop.yaml -p %s firewall allow denied.example.org --worker ", s.Dir, s.Project)
	if n := strings.Count(c.errs.String(), allow); n != 1 {
		t.Errorf("the person was told %d times\n%s", n, c.errs)
	}
	if n := strings.Count(c.errs.String(), "git: rw}` in "+s.Dir); n != 1 {
		t.Errorf("git: rw was named %d times\n%s", n, c.errs)
	}

	d := s.Run("call", "--approve-all", "editor", "shell", "command=curl -sSf http://called.example.org/")
	if d.Code == 0 || !strings.Contains(d.Err, "workshop: refused called.example.org:80 (not allowed); to allow it: `workshop firewall allow called.example.org --worker editor`\n") || strings.Contains(d.Err, "tell the person") {
		t.Errorf("call: %d\n%s", d.Code, d.Err)
	}
}

// answerOf is the text of an answer, and the note of its structured result.
func answerOf(t *testing.T, result json.RawMessage) (text, note string) {
	t.Helper()
	var a struct {
		Content    []struct{ Text string }
		Structured struct{ Note string } `json:"structuredContent"`
	}
	if err := json.Unmarshal(result, &a); err != nil {
		t.Fatalf("%v: %s", err, result)
	}
	for _, b := range a.Content {
		text += b.Text + "\n"
	}
	return text, a.Structured.Note
}

// A program that uses package client gets the same texts.
func TestClientIsTold(t *testing.T) {
	scenario.Once(t, "the client is this process, which is root")
	s := scenario.At(t, "package client has the note of a refusal in a result's text", toldFiles())
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	for _, e := range append(s.Program(t.Context(), "").Env, "WORKSHOP_FILE=", "WORKSHOP_PROJECT_NAME=") {
		name, value, _ := strings.Cut(e, "=")
		t.Setenv(name, value)
	}
	w := open(t, client.Options{Dir: s.Dir, Project: s.Project, Up: true, Approve: func(context.Context, client.Call) (client.Answer, error) { return client.Once, nil }})
	r, err := w.Call(t.Context(), "editor", "shell", map[string]string{"command": "curl -sS http://denied.example.org/"})
	if err != nil || !strings.Contains(r.Text, "[During this call the guard refused denied.example.org:80"+serversFault+"]") {
		t.Errorf("%v, %+v", err, r)
	}
}

// A person is told in one hint why an allowed host can't be reached, which lines give
// git a name, what is full, and what is read-only where a program says something else.
func TestFailuresAreExplained(t *testing.T) {
	scenario.Once(t, "what explains them doesn't depend on who runs it")
	_, err := exec.LookPath("git")
	testutil.Require(t, err == nil, "there is no git")
	files := toldFiles()
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "allow: [allowed.example.org]", "allow: [allowed.example.org, gone.example.org]", 1)
	files["workshop.yaml"] = strings.Replace(files["workshop.yaml"], "    image: host\n", "    image: host\n    scratch: 2M\n", 1)
	s := scenario.At(t, "a person is told why an allowed host can't be reached, which lines give git a name, and what is full or read-only", files)
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	s.Up()
	const gone = "gone.example.org:80 is allowed, but no resolver of this machine has an address for it; to try it: `workshop firewall explain gone.example.org:80`"
	nodeSays := func(path string) string {
		return `echo "npm error enoent ENOENT: no such file or directory, mkdir '` + path + `'" >&2; exit 254`
	}
	const identity = "a worker doesn't see your git configuration: to commit in your name, write `git_author: host` below `container:` in workshop.yaml, then run `workshop up`"
	for _, c := range []struct{ command, want string }{
		{"curl -sSf http://gone.example.org/", gone},
		{"cd /tmp && git init -q x && cd x && git -c user.useConfigOnly=true commit -q --allow-empty -m x", identity},
		{"head -c 5M /dev/zero > /scratch/x; r=$?; rm /scratch/x; exit $r", ""}, // nobody knows any more where
		{"head -c 5M /dev/zero > /scratch/x", "/scratch is full (2M): raise `scratch` in workshop.yaml, then run `workshop up`; or empty it with `workshop restart editor`"},
		{"dd if=/dev/zero of=/scratch/x bs=1M count=5; rm /scratch/x; exit 1", "/scratch is full (2M): raise `scratch` in workshop.yaml, then run `workshop up`; or empty it with `workshop restart editor`"},
		{nodeSays("/workspace/src/node_modules"), "/workspace/src is read-only: to let the worker write there, write its mount as `./src:/workspace/src:rw` in workshop.yaml, then run `workshop up`"},
		{nodeSays("/usr/lib/node_modules"), "/usr/lib/node_modules belongs to the image, which is read-only; "},
		{nodeSays("/workspace/src/none/node_modules"), ""},
		{nodeSays("/workspace/out/node_modules"), ""},
		{"echo 'fatal: not a git repository: /home/me/repo/.git/worktrees/feature' >&2; exit 128", "the repository of this worktree isn't in the worker; `workshop up` says why: commit on this machine"},
	} {
		for _, args := range [][]string{{"exec", "editor", "--", "sh", "-c", c.command}, {"call", "--approve-all", "editor", "shell", "command=rm -rf /tmp/x; " + c.command}} {
			d := s.Run(args...)
			err := strings.Join(strings.Fields(d.Err), " ")
			if d.Code == 0 || strings.Count(err, "workshop: hint: "+c.want) != min(1, len(c.want)) || strings.Count(err, "hint: ") != min(1, len(c.want)) {
				t.Errorf("%q: %d, want %q\n%s", args, d.Code, c.want, d.Err)
			}
		}
	}
	// The error comes first, then what to do; what was in the background isn't there any more.
	d := s.Run("call", "--approve-all", "editor", "write_file", "path=/workspace/src/x", "content=x")
	if said, does := strings.Index(d.Err, "workshop: error: "), strings.Index(d.Err, "workshop: hint: "); said < 0 || does < said {
		t.Errorf("the order of error and hint:\n%s", d.Err)
	}
	d = s.Run("call", "--approve-all", "editor", "shell", "command=sleep 100 & sleep 100 & echo out")
	if want := "2 processes of the command that ran in the background have ended with this call\n"; d.Code != 0 || d.Err != want {
		t.Errorf("%d, got %q, want %q", d.Code, d.Err, want)
	}
}

// With nobody to ask a model is told one sentence, and the person once how to loosen
// it; a call that can't succeed fails without a question.
func TestUnattendedIsTold(t *testing.T) {
	scenario.Once(t, "nothing of it depends on who runs it")
	s := callScenario(t, "an unattended refusal is one sentence for the model, and the way out is the person's to know")
	s.Up("editor")
	c := newRPC(t, s, "editor")
	const want = "write_file of editor was not approved: it needs a person's yes, and nobody can be asked; don't retry, tell the person\n"
	for range 2 {
		a := c.ask("tools/call", `{"name": "write_file", "arguments": {"path": "/workspace/out/n.txt", "content": "x"}}`)
		if text, _ := answerOf(t, a.Result); text != want || s.Exists("out/n.txt") {
			t.Errorf("told %q", text)
		}
	}
	c.ask("tools/call", `{"name": "shell", "arguments": {"command": "git status"}}`)
	a := c.ask("tools/call", `{"name": "write_file", "arguments": {"path": "/workspace/src/a.txt", "content": "x"}}`)
	if text, _ := answerOf(t, a.Result); strings.Contains(text, "B42") || !strings.Contains(text, fmt.Sprintf(readOnlyHere, "/workspace/src")) {
		t.Errorf("a write that can't succeed: %q", text)
	}
	c.end()
	c.ended()
	// The person reads it once for each rule that would let such calls pass.
	for _, rule := range []string{`{tool: write_file, match: "out/**", approval: auto}`, `{tool: shell, match: "git status", approval: auto}`} {
		hint := " of editor was refused: to let such calls pass, answer always in a terminal, which adds `- " + rule + "` to " + s.Dir + "/workshop.yaml: `workshop -f " + s.Dir + "/workshop.yaml -p " + s.Project + " call editor "
		if n := strings.Count(c.errs.String(), hint); n != 1 {
			t.Errorf("the person was told %d times of %s\n%s", n, rule, c.errs)
		}
	}
}

// A room that was restarted by hand leaves its workers without a network: exec says
// what repairs it, and that does.
func TestStaleRoom(t *testing.T) {
	scenario.OnlyDocker(t, "rooms of other engines aren't restarted by hand")
	s := callScenario(t, "after a restart of its room by hand, a worker has no network, and exec says what repairs it")
	s.Up("editor")
	if err := s.Restart("room"); err != nil {
		t.Fatal(err)
	}
	d := s.Run("exec", "editor", "--", "curl", "-sSf", "http://allowed.example.org/")
	if d.Code == 0 || !strings.Contains(d.Err, "workshop: hint: the room of editor was restarted, which leaves no network: `workshop up` repairs it\n") {
		t.Errorf("%d\n%s", d.Code, d.Err)
	}
	ps := s.Expect(0, "ps", "--format", "json")
	if !strings.Contains(ps.Out, `"stale": true`) {
		t.Errorf("ps says nothing:\n%s", ps.Out)
	}
	s.Up("editor")
	if d := s.Expect(0, "exec", "editor", "--", "curl", "-sSf", "http://allowed.example.org/"); !strings.Contains(d.Out, "allowed.example.org") {
		t.Errorf("%+v", d)
	}
}

// A call's note names all that was refused during it, however late the guard comes to
// write it: three hosts in parallel and in sequence, look-ups and a port.
func TestNoteIsComplete(t *testing.T) {
	scenario.Once(t, "the note is written by this machine's side")
	s := scenario.At(t, "the note of a call names every host that was refused during it", toldFiles())
	s.Env = append(s.Env, "HOME="+s.TempDir(), "XDG_STATE_HOME="+s.TempDir(), "XDG_CONFIG_HOME=")
	s.Up()
	c := newRPC(t, s, "--approve-all", "editor")
	const port = `perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "allowed.example.org:22")'`
	for _, x := range []struct{ name, command string }{
		{"parallel", "curl -sS http://a%[1]d.example.org/ & curl -sS http://b%[1]d.example.org/ & curl -sS http://c%[1]d.example.org/ & wait; exit 1"},
		{"sequence", "getent hosts a%[1]d.example.org; curl -sS http://b%[1]d.example.org/; getent hosts c%[1]d.example.org"},
		{"the same again", "getent hosts a.example.org; getent hosts b.example.org; getent hosts c.example.org"},
		{"a port, and success", "getent hosts a%[1]d.example.org; getent hosts b%[1]d.example.org; " + port + "; true"},
	} {
		t.Run(x.name, func(t *testing.T) {
			begun := time.Now()
			lacking, killed := 0, 0
			for i := range 50 {
				command := x.command
				wanted := []string{"a.example.org", "b.example.org", "c.example.org"}
				if strings.Contains(command, "%") {
					command = fmt.Sprintf(command, i)
					wanted = []string{fmt.Sprintf("a%d.example.org", i), fmt.Sprintf("b%d.example.org", i), fmt.Sprintf("c%d.example.org", i)}
				}
				if strings.Contains(command, "perl") {
					wanted[2] = "allowed.example.org:22"
				}
				args, err := json.Marshal(map[string]any{"name": "shell", "arguments": map[string]string{"command": command}})
				if err != nil {
					t.Fatal(err)
				}
				text, _ := answerOf(t, c.ask("tools/call", string(args)).Result)
				if strings.Contains(text, "[ended by SIGKILL]") { // it didn't try all
					killed++
					t.Logf("call %d was killed: %s", i, text)
					continue
				}
				_, note, _ := strings.Cut(text, "[During this call the guard refused ")
				for _, host := range wanted {
					if !strings.Contains(note, host) {
						lacking++
						t.Logf("call %d: the note lacks %s:\n%s", i, host, text)
						break
					}
				}
			}
			t.Logf("%s a call", (time.Since(begun) / 50).Round(10*time.Microsecond))
			if lacking > 0 || killed > 1 {
				t.Errorf("%d of 50 notes lack a host, %d calls were killed", lacking, killed)
			}
		})
	}
}
