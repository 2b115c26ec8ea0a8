package process

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/landlock"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// TestFileTools take the worker's paths, and nothing else of the machine.
func TestFileTools(t *testing.T) {
	h := inHouse(t)
	s := h.session("one")
	if s.welcome.Workdir != "/workspace" || s.welcome.Grant.Worker != "one" || s.welcome.OOMKills != -1 || s.welcome.Instance == "" {
		t.Errorf("%+v", s.welcome)
	}
	two, inMount := h.session("two"), tool.ReadFileResult{}
	if err := two.call(tool.ReadFile, tool.ReadFileArgs{Path: "a.txt"}, &inMount); err != nil || two.welcome.Workdir != "/workspace/src" {
		t.Errorf("a working directory in a mount: %q, %v", two.welcome.Workdir, err)
	}
	read := func(p string) (string, error) {
		var r tool.ReadFileResult
		err := s.call(tool.ReadFile, tool.ReadFileArgs{Path: p}, &r)
		return strings.TrimSpace(r.Content), err
	}
	for p, want := range map[string]string{"src/a.txt": "in src", "/workspace/out/old.txt": "old", "copy/c.txt": "copied", "/run/secrets/token": "s3cret"} {
		if got, err := read(p); err != nil || got != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	os.Symlink(h.home+"/.ssh", h.dir+"/out/keys")
	os.Symlink("../beside.txt", h.dir+"/src/up")
	for _, p := range []string{"copy/k.key", "src/../../beside.txt", h.dir + "/beside.txt", h.home + "/.ssh/id", "out/keys/id", "src/up", "/etc/passwd", "/proc/self/environ"} {
		if got, err := read(p); err == nil {
			t.Errorf("%s gives %q", p, got)
		}
	}
	write := func(p string) error {
		return s.call(tool.WriteFile, tool.WriteFileArgs{Path: p, Content: "written"}, nil)
	}
	for _, p := range []string{"out/new.txt", "/tmp/x", "/scratch/x", "/home/worker/.config/x"} {
		if err := write(p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for p, says := range map[string]string{"src/new.txt": "read-only", "copy/c.txt": "read-only", "out/.git/config": "read-only", "out/keys/x": "leads out", "/workspace/x": "read-only"} {
		if err := write(p); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if b, _ := os.ReadFile(h.dir + "/out/new.txt"); string(b) != "written" {
		t.Errorf("here it is %q", b)
	}
	var list tool.ListFilesResult
	if err := s.call(tool.ListFiles, tool.ListFilesArgs{Glob: "**/*.txt"}, &list); err != nil || len(list.Entries) != 5 {
		t.Errorf("%+v, %v", list, err)
	}
	// B41: what its file doesn't list, a worker hasn't.
	var e *wire.Error
	if err := h.session("two").call(tool.Shell, tool.ShellArgs{Command: "true"}, nil); !errors.As(err, &e) || e.Code != wire.CodeNotOffered {
		t.Errorf("shell of two: %v", err)
	}
}

// TestFence: programs of a worker are held by the kernel.
func TestFence(t *testing.T) {
	needLandlock(t, landlock.ABI())
	h := inHouse(t)
	os.Symlink(h.home+"/.ssh", h.dir+"/out/keys")
	os.Chmod(h.dir, 0o777)
	s := h.session("one")
	shell := func(line string) tool.ShellResult {
		t.Helper()
		var r tool.ShellResult
		if err := s.call(tool.Shell, tool.ShellArgs{Command: line}, &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, line := range []string{
		"cat src/a.txt copy/c.txt", "cd out && ls && echo x >new && mv new newer && rm newer", "echo x >/dev/null", "echo x >$HOME/x && echo y >$TMPDIR/y",
		"python3 -c 'import json' || ! command -v python3", "git --version || ! command -v git", "ls /usr/bin | head -1", "test $GREETING = hello",
		"test -d ${LIBS%%:*} && cat ${LIBS%%:*}/l.txt", "sh -c 'kill -0 $$'",
	} {
		if r := shell(line); r.ExitCode != 0 {
			t.Errorf("%s: %d %s%s", line, r.ExitCode, r.Stdout.Text, r.Stderr.Text)
		}
	}
	keeper := fmt.Sprint(os.Getpid())
	for _, line := range []string{
		"cat " + h.home + "/.ssh/id", "ls " + h.home, "cat out/keys/id", "cat src/../../beside.txt", "cat " + h.dir + "/beside.txt", "ls /home", "ls /",
		"echo x >src/new", "rm src/a.txt", "echo x >>copy/c.txt", "echo x >" + h.dir + "/planted", "echo x >/tmp/planted-by-a-test", "ln " + h.dir + "/beside.txt out/l",
		"mv out/old.txt /tmp/planted-by-a-test", "cat copy/k.key", "cat /proc/" + keeper + "/environ", "kill -0 " + keeper, "kill -0 $(ps -o ppid= -p $PPID)",
		"cat /etc/shadow", "ls /root", "mkdir " + h.dir + "/planted", "test -w /dev/sda || cat /dev/kmsg",
	} {
		if r := shell(line); r.ExitCode == 0 {
			t.Errorf("%s: %s", line, r.Stdout.Text)
		}
	}
	// As a person's command, and in an MCP server, it is the same.
	if code, out := h.exec("one", "cat "+h.home+"/.ssh/id"); code == 0 {
		t.Errorf("exec: %q", out)
	}
	for _, name := range []string{h.dir + "/planted", "/tmp/planted-by-a-test"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	if e, _ := os.ReadDir(h.dir + "/src"); len(e) != 2 {
		t.Errorf("src has %v", e)
	}
}

// TestWithoutLandlock: the file tools are bound all the same; programs are not,
// and Info says so.
func TestWithoutLandlock(t *testing.T) {
	h := inHouse(t)
	c, err := h.e.worker(h.project, "one", "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := h.e.readWorker(h.project, c.ID)
	if err != nil {
		t.Fatal(err)
	}
	w.Spec.Landlock = false
	if err := h.e.writeWorker(h.project, c.ID, w); err != nil {
		t.Fatal(err)
	}
	os.Symlink(h.home+"/.ssh", h.dir+"/out/keys")
	s := h.session("one")
	for _, p := range []string{h.home + "/.ssh/id", "out/keys/id", "src/../../beside.txt", "/etc/passwd"} {
		if err := s.call(tool.ReadFile, tool.ReadFileArgs{Path: p}, nil); err == nil {
			t.Errorf("%s was read", p)
		}
	}
	if err := s.call(tool.WriteFile, tool.WriteFileArgs{Path: "src/x", Content: "x"}, nil); err == nil {
		t.Error("a read-only mount was written to")
	}
	if code, out := h.exec("one", "cat "+h.home+"/.ssh/id"); code != 0 || out != "private key" {
		t.Errorf("control: %d %q", code, out)
	}
	i, err := h.e.Info(t.Context())
	if err != nil || len(i.Findings) == 0 || i.Findings[0].Name != "landlock" || i.Findings[0].Held != (landlock.ABI() > 0) {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestEnvironment is the worker's, and none of ours.
func TestEnvironment(t *testing.T) {
	t.Setenv("WORKSHOP_CANARY", "x")
	h := inHouse(t)
	_, out := h.exec("one", "env")
	for _, no := range []string{"WORKSHOP_CANARY", "s3cret", "PROXY", "proxy", "SSH_", "/home/worker"} {
		if strings.Contains(out, no) {
			t.Errorf("%s is in %s", no, out)
		}
	}
	for _, want := range []string{"GREETING=hello", "PATH=" + defaultPath, "LIBS=" + h.dir + "/src/lib:/usr/lib", "USER=worker"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	wantUID := fmt.Sprint(os.Getuid())
	if os.Getuid() == 0 {
		wantUID = fmt.Sprint(ordinary)
	}
	if _, out := h.exec("one", "id -u; id -G; ls -l /proc/self/fd | grep -c -e memfd -e workshop-init; pwd -P"); !strings.HasPrefix(out, wantUID+"\n"+wantUID+"\n0\n") || !strings.HasSuffix(out, "/view/workspace") {
		t.Errorf("%q", out)
	}
	// Its session and the keeper of that alone: what they are given stands in no
	// command line.
	line := "cat /proc/$PPID/cmdline /proc/$(ps -o ppid= -p $PPID | tr -d ' ')/cmdline | tr '\\0' ' '"
	if _, out := h.exec("one", line); out != "workshop-init tools --process serve workshop-init tools --process keep" {
		t.Errorf("command lines say %.300q", out)
	}
}

// TestNoServers: a list of tools starts MCP servers, and nobody has said yes by
// then: a worker that has one isn't brought up, and none is written down (B43).
func TestNoServers(t *testing.T) {
	h := inHouse(t)
	h.down()
	file := h.dir + "/workers/one.md"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(b, []byte("tools: "), []byte("tools: mcp__echo, "), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	h.compile()
	id := func(err error) string {
		var refused *engine.RefusedError
		if errors.As(err, &refused) {
			return refused.Promise
		}
		return fmt.Sprint(err)
	}
	if got := id(h.e.Check(t.Context(), h.c)); got != "B43" {
		t.Errorf("check: %s", got)
	}
	if got := id(h.e.Apply(t.Context(), h.plan(), nil)); got != "B43" {
		t.Errorf("up: %s", got)
	}
	if got := id(h.e.describe(h.c, "one", "x")); got != "B43" {
		t.Errorf("record: %s", got)
	}
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	h.compile()
	h.up()
}

// TestFetch asks the policy and the never-list, for each hop.
func TestFetch(t *testing.T) {
	h := inHouse(t)
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	for worker, list := range map[string]map[string]string{
		"one": {
			"https://other.example.org/": "not-allowed", "http://api.example.org:8080/": "port", server.URL: "loopback", "http://localhost:9/": "localhost",
			"http://169.254.169.254/": "metadata", "http://[::1]:80/": "loopback", "http://[::ffff:127.0.0.1]/": "loopback", "http://10.0.0.1/": "not-allowed",
		},
		"two": {"http://api.example.org/": "no network"},
	} {
		s := h.session(worker)
		for url, says := range list {
			err := s.call(tool.FetchURL, tool.FetchURLArgs{URL: url}, nil)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s: %v, want %q", worker, url, err, says)
			}
		}
	}
	if asked {
		t.Error("a server of this machine was asked")
	}
}

// TestEnds: nothing outlives its session, whatever ends that.
func TestEnds(t *testing.T) {
	h := inHouse(t)
	alive := func(mark string) bool {
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, f := range files {
			if b, _ := os.ReadFile(f); bytes.Contains(b, []byte(mark)) {
				return true
			}
		}
		return false
	}
	leave := func(s *session, mark string) {
		t.Helper()
		line := "(setsid env -i sh -c 'trap \"\" TERM HUP; while :; do sleep 0.05; done; : " + mark + "' >/dev/null 2>&1 &); sleep 0.1"
		if err := s.call(tool.Shell, tool.ShellArgs{Command: line}, nil); err != nil {
			t.Fatal(err)
		}
		if !alive(mark) {
			t.Fatal("control: it doesn't run")
		}
	}
	for name, end := range map[string]func(*session){
		"closed": func(s *session) { s.Close() },
		"killed": func(s *session) { _ = s.call(tool.Shell, tool.ShellArgs{Command: "kill -9 $PPID"}, nil) },
		"down":   func(*session) { h.down(); h.up() },
		"restarted": func(s *session) {
			o, _ := h.e.Observe(t.Context(), h.project, engine.DesiredImages(engine.Desired{Compiled: h.c})...)
			known := *h.bare // what a restart knows of the machine: no users
			known.Facts = &compose.Facts{Project: h.project, ProjectDir: h.dir}
			p, err := engine.PlanRestart(engine.Desired{Compiled: &known}, o)
			if err == nil {
				err = h.e.Apply(t.Context(), p, nil)
			}
			if err != nil {
				t.Error(err)
			}
			if s.welcome.Instance == h.session("one").welcome.Instance {
				t.Error("it is the same instance")
			}
		},
	} {
		mark := "left-by-a-test-" + name + fmt.Sprint(os.Getpid())
		s := h.session("one")
		leave(s, mark)
		end(s)
		testutil.Eventually(t, name+": what it left ends", func() bool { return !alive(mark) })
		select {
		case <-s.Done():
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the session goes on", name)
		}
	}
	if code, _ := h.exec("one", "sleep 1000 >/dev/null 2>&1 & exit 3"); code != 3 {
		t.Errorf("exec: %d", code)
	}
}

// TestLife: a second up changes nothing, and down leaves nothing.
func TestLife(t *testing.T) {
	h := inHouse(t)
	if p := h.plan(); !p.Empty() {
		t.Errorf("again:\n%s", p)
	}
	seen, err := h.e.Observe(t.Context(), h.project)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range seen.Containers {
		if c.Role != "worker" || c.State != "running" {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
	if _, err := h.e.Session(t.Context(), h.project, "one", "/elsewhere"); !errors.As(err, new(*engine.ForeignError)) {
		t.Errorf("of another directory: %v", err)
	}
	if _, err := h.e.Session(t.Context(), h.project, "guard", ""); err == nil {
		t.Error("a session with the guard")
	}
	if _, err := h.e.Session(t.Context(), "../beside", "one", ""); err == nil {
		t.Error("a project that is a path")
	}
	h.down()
	if _, err := h.e.Session(t.Context(), h.project, "one", ""); !errors.As(err, new(*engine.NotRunningError)) {
		t.Errorf("after down: %v", err)
	}
	for _, dir := range []string{h.e.opts.StateDir, h.e.opts.DataDir} {
		if e, _ := os.ReadDir(dir); len(e) > 0 {
			t.Errorf("%s has %v", dir, e)
		}
	}
}

func TestCopy(t *testing.T) {
	h := inHouse(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "x.txt", Size: 1, Mode: 0o644, Typeflag: tar.TypeReg})
	io.WriteString(w, "x")
	w.Close()
	if err := h.e.CopyTo(t.Context(), h.project, "one", "/workspace/out", bytes.NewReader(b.Bytes())); err != nil {
		t.Error(err)
	}
	if err := h.e.CopyTo(t.Context(), h.project, "one", "/workspace/src", bytes.NewReader(b.Bytes())); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("%v", err)
	}
	r, err := h.e.CopyFrom(t.Context(), h.project, "one", "/workspace/out/x.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if h, err := tar.NewReader(r).Next(); err != nil || h.Name != "x.txt" {
		t.Errorf("%+v, %v", h, err)
	}
	if _, err := h.e.CopyFrom(t.Context(), h.project, "one", h.home+"/.ssh/id"); err == nil {
		t.Error("what is outside was copied")
	}
}

// TestUsers: nobody runs as root, nor as somebody that the caller isn't.
func TestUsers(t *testing.T) {
	for text, ok := range map[string]bool{
		"0:0": false, "0:5": false, "5:0": false, "": false, "nobody": false,
		fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()): os.Getuid() != 0, "64206:64206": os.Getuid() == 0,
	} {
		if _, err := userOf("w", text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
