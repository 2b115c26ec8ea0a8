package process

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/initimage"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/workshop"
)

// As root, workers run as a uid that nobody has; the same tests run a second
// time as such a user, without root ([TestRootless]).
const (
	ordinary        = 64205
	programVariable = "WORKSHOP_PROCESS_TEST_PROGRAM" // of workshop-init, for the second time
)

var program = sync.OnceValues(func() ([]byte, error) {
	if file := os.Getenv(programVariable); file != "" {
		return os.ReadFile(file)
	}
	dir, err := os.MkdirTemp("", "init")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "workshop-init")
	if err := testutil.Init(out); err != nil {
		return nil, err
	}
	return os.ReadFile(out)
})

var initSet = sync.OnceValues(func() (*initimage.Set, error) {
	b, err := program()
	if err != nil {
		return nil, err
	}
	return testutil.InitSet(b), nil
})

// TestRootless runs the tests once more, as an ordinary user.
func TestRootless(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is it
	}
	b, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := place(t)
	file := filepath.Join(dir, "workshop-init")
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(dir+"/home", 0o700)
	os.Chown(dir+"/home", ordinary, ordinary)
	cmd := exec.Command("/proc/self/exe", "-test.v", "-test.count=1", "-test.timeout=5m")
	cmd.Dir = dir + "/home"
	cmd.Env = append(os.Environ(), programVariable+"="+file, "HOME="+dir+"/home", "TMPDIR="+dir+"/home", "XDG_RUNTIME_DIR=", "GOCACHE="+dir+"/home/c", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Count(out, []byte("--- PASS")) < 5 || bytes.Contains(out, []byte("--- SKIP")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// place is a directory that an ordinary user reaches.
func place(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		os.Chmod(filepath.Dir(dir), 0o755)
	}
	os.Chmod(dir, 0o755)
	return dir
}

// house is a machine's part: a project with a workshop, and a home beside it.
type house struct {
	t       testing.TB
	e       *Engine
	dir     string // of the project
	home    string
	project string
	c       *compose.Compiled
	bare    *compose.Compiled // without facts
}

const workshopFile = `workshop:
  name: beside
  isolation: namespace
  container:
    image: host
    network: {mode: restricted, allow: [api.example.org, {cidr: 198.51.100.0/24, port: 80}]}
    workdir: /workspace
    mounts:
      - ./src:/workspace/src
      - ./out:/workspace/out:rw
      - {source: ./copied, target: /workspace/copy, exclude: ["*.key"]}
    secrets: [{name: token, file: ./token}]
    env: {LIBS: "/workspace/src/lib:/usr/lib", GREETING: hello}
    resources: {timeout: 20s}
  workers:
    - {name: one, container: {secrets: [token]}}
    - {name: two, container: {network: none, workdir: /workspace/src}}
  mcp:
    echo: {command: sh, args: ["-c", "cat; echo $$TOKEN"], secrets: {TOKEN: token}}
`

// inHouse brings the workshop up.
func inHouse(t testing.TB) *house {
	t.Helper()
	base := place(t)
	h := &house{t: t, dir: base + "/project", home: base + "/home", project: "beside"}
	for name, text := range map[string]string{
		"project/workshop.yaml":  workshopFile,
		"project/workers/one.md": "---\nname: one\ntools: Read, Write, Edit, LS, Grep, Bash, WebFetch\n---\nx\n",
		"project/workers/two.md": "---\nname: two\ntools: Read, WebFetch\n---\nx\n",
		"project/token":          "s3cret\n", "project/src/a.txt": "in src\n", "project/src/lib/l.txt": "lib\n", "project/out/old.txt": "old\n",
		"project/out/.git/config": "git\n", "project/copied/c.txt": "copied\n", "project/copied/k.key": "key\n", "project/beside.txt": "beside\n",
		"home/.ssh/id": "private key\n",
	} {
		file := filepath.Join(base, name)
		os.MkdirAll(filepath.Dir(file), 0o755)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	uid := os.Getuid()
	if uid == 0 {
		uid = ordinary
		filepath.WalkDir(base, func(p string, _ os.DirEntry, _ error) error { return os.Lchown(p, uid, uid) })
	}
	set, err := initSet()
	if err != nil {
		t.Fatal(err)
	}
	data := base + "/data"
	os.Mkdir(data, 0o755)
	o := Options{StateDir: base + "/state", CacheDir: base + "/cache", Init: set}
	if os.Geteuid() == 0 {
		o.DataDir = data
	}
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	h.e = e.(*Engine)
	h.compile()
	h.up()
	t.Cleanup(func() {
		h.down()
		os.RemoveAll(h.c.Facts.RuntimeDir)
	})
	return h
}

func (h *house) compile() {
	h.t.Helper()
	w, list := workshop.Load(h.t.Context(), os.DirFS(h.dir), "workshop.yaml", workshop.Options{Home: h.home, Root: h.dir})
	if list.HasErrors() {
		h.t.Fatal(list)
	}
	c, err := compose.Compile(w)
	if err != nil {
		h.t.Fatal(err)
	}
	h.bare = c
	info, err := h.e.Info(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	image, volume, err := h.e.InitNames(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	f, missing, list := facts.Collect(h.t.Context(), facts.Options{
		Workshop: w, Compiled: c, Project: h.project, ProjectDir: h.dir, Home: h.home, UID: os.Getuid(), GID: os.Getgid(), Arch: info.Arch, Local: true,
		DataRoot: info.DataRoot, InitImage: image, InitVolume: volume, SecretsOnDisk: true,
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"XDG_RUNTIME_DIR": filepath.Dir(h.dir) + "/run"}[name]
			return v, ok
		},
	})
	if list = append(list, missing.Make()...); list.HasErrors() {
		h.t.Fatal(list)
	}
	if h.c, list = compose.WithFacts(c, f); list.HasErrors() {
		h.t.Fatal(list)
	}
}

func (h *house) plan() *engine.Plan {
	h.t.Helper()
	d := engine.Desired{Compiled: h.c}
	o, err := h.e.Observe(h.t.Context(), h.project, engine.DesiredImages(d)...)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := engine.PlanUp(d, o)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

func (h *house) up() {
	h.t.Helper()
	if err := h.e.Apply(h.t.Context(), h.plan(), nil); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) down() {
	h.t.Helper()
	ctx := context.WithoutCancel(h.t.Context())
	o, err := h.e.Observe(ctx, h.project)
	if err != nil {
		h.t.Fatal(err)
	}
	p, err := engine.PlanDown(o, h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.e.Apply(ctx, p, nil); err != nil {
		h.t.Fatal(err)
	}
}

// session is one with a worker's tools.
type session struct {
	*wire.Conn
	t       testing.TB
	welcome protocol.Welcome
}

func (h *house) session(worker string) *session {
	h.t.Helper()
	conn, err := h.e.Session(h.t.Context(), h.project, worker, h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	s := &session{Conn: wire.NewClient(conn), t: h.t}
	h.t.Cleanup(func() { s.Close() })
	if err := s.Call(h.t.Context(), "hello", protocol.Hello{Version: wire.Version, Role: protocol.RoleTools}, &s.welcome); err != nil {
		h.t.Fatal(err)
	}
	return s
}

// call calls a tool.
func (s *session) call(name string, args any, result any) error {
	b, _ := json.Marshal(args)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return s.Call(ctx, "call", protocol.Call{Tool: name, Arguments: b}, result)
}

// exec runs a line in a worker as a person does.
func (h *house) exec(worker, line string) (code int, out string) {
	h.t.Helper()
	var b bytes.Buffer
	code, err := h.e.Exec(h.t.Context(), h.project, worker, engine.ExecOptions{Command: []string{"sh", "-c", "exec 2>&1; " + line}, Stdout: &b})
	if err != nil {
		h.t.Fatal(err)
	}
	return code, strings.TrimSpace(b.String())
}

// needLandlock: without it there is nothing to test of it.
func needLandlock(t testing.TB, abi int) { testutil.Require(t, abi > 0, "no Landlock") }
