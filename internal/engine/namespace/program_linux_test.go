package namespace

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/initimage"
)

func engineOf(t *testing.T, program string) *Engine {
	t.Helper()
	e, err := New(t.Context(), Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Init: testutil.InitSet([]byte(program), arch)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The program in the cache is the embedded one: whole, readable by nobody, and
// written again when anything about it changed.
func TestProgram(t *testing.T) {
	e := engineOf(t, "the program")
	if e.hasProgram() {
		t.Error("it is there before it was written")
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := e.program(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	dir, err := e.program()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, programName)
	first, err := stampOf(name)
	if err != nil || !e.hasProgram() {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(err, info.Mode())
	}
	for what, change := range map[string]func() error{
		"content": func() error {
			// Same size, same time of the content's change.
			info, err := os.Stat(name)
			return errors.Join(err, os.Chmod(name, 0o755), os.WriteFile(name, []byte("another one"), 0), os.Chmod(name, initimage.ToolMode), os.Chtimes(name, info.ModTime(), info.ModTime()))
		},
		"mode":    func() error { return os.Chmod(name, 0o755) },
		"removed": func() error { return os.Remove(name) },
		"replaced": func() error {
			return errors.Join(os.WriteFile(dir+"/x", []byte("another one"), initimage.ToolMode), os.Rename(dir+"/x", name))
		},
		"another user's": func() error {
			if os.Geteuid() != 0 {
				return os.Remove(name)
			}
			err := os.Chown(name, 65532, 65532)
			now, e := stampOf(name)
			b, _ := json.Marshal(now)
			return errors.Join(err, e, os.WriteFile(dir+".json", b, 0o600))
		},
		"no stamp": func() error { return os.Remove(dir + ".json") },
	} {
		time.Sleep(10 * time.Millisecond) // the clock of file systems ticks
		if err := change(); err != nil {
			t.Fatal(what, err)
		}
		if e.hasProgram() {
			t.Errorf("%s: it is taken for unchanged", what)
		}
		if _, err := e.program(); err != nil || !e.hasProgram() {
			t.Errorf("%s: %v", what, err)
		}
		now, err := stampOf(name)
		if err != nil || now.Ino == first.Ino && what != "no stamp" && now.CTime == first.CTime || now.Mode != unix.S_IFREG|initimage.ToolMode {
			t.Errorf("%s: %v %+v", what, err, now)
		}
		if os.Geteuid() == 0 {
			if b, _ := os.ReadFile(name); string(b) != "the program" {
				t.Errorf("%s: it is %q", what, b)
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".new-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A cache from which nothing can be executed is named.
func TestNoExec(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestNoExecInside$", "-test.v")
	cmd.Env = append(os.Environ(), forbiddenEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestNoExecInside") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNoExecInside(t *testing.T) {
	if os.Getenv(forbiddenEnv) == "" {
		t.Skip("it is a part of TestNoExec")
	}
	e := engineOf(t, "the program")
	if err := unix.Mount("none", e.opts.CacheDir, "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(e.opts.CacheDir, unix.MNT_DETACH) })
	if _, err := e.program(); err == nil || !strings.Contains(err.Error(), "noexec") || !strings.Contains(err.Error(), "XDG_CACHE_HOME") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	if _, err := New(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "HOME") {
		t.Error(err)
	}
}

const forbiddenEnv = "NAMESPACE_TEST_FORBIDDEN"

// Where user namespaces are forbidden, the refusal names the setting.
func TestForbidden(t *testing.T) {
	if os.Getenv(forbiddenEnv) != "" {
		return // TestForbiddenInside is what runs
	}
	testutil.Require(t, os.Geteuid() == 0, "it needs root to become somebody else")
	dir, err := os.MkdirTemp("", "namespace-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(dir+"/test", self, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	// The setting is a user namespace's own.
	cmd := exec.Command(dir+"/test", "-test.run=^TestForbiddenInside$", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{forbiddenEnv + "=1", "TMPDIR=/dev/shm"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: ordinary, HostID: ordinary, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: ordinary, HostID: ordinary, Size: 1}},
		Credential:  &syscall.Credential{Uid: ordinary, Gid: ordinary, NoSetGroups: true},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_RESOURCE},
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestForbiddenInside") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestForbiddenInside(t *testing.T) {
	if os.Getenv(forbiddenEnv) == "" {
		t.Skip("it is a part of TestForbidden")
	}
	e := engineOf(t, "the program")
	if f := e.userNamespaces(); !f.Held {
		t.Fatalf("%+v", f)
	}
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	f := e.userNamespaces()
	if f.Held || !strings.Contains(f.Meaning, "user.max_user_namespaces = 0") || !strings.Contains(f.Do, "sysctl user.max_user_namespaces=15000") {
		t.Errorf("%+v", f)
	}
	err := e.start("p")
	var refused *engine.RefusedError
	if !errors.As(err, &refused) || refused.Promise != "B6" || refused.ExitCode() != 4 {
		t.Error(err)
	}
	if exists(e.dir("p")) {
		t.Error("a project was begun")
	}
}

func TestLogOptions(t *testing.T) {
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		tail, since string
		wantTail    int
		wantSince   time.Time
		bad         bool
	}{
		{"all", "", -1, time.Time{}, false},
		{"", "", -1, time.Time{}, false},
		{"0", "10m", 0, now.Add(-10 * time.Minute), false},
		{"-5", "2026-11-22T05:00:00Z", -1, now.Add(-time.Hour), false},
		{"5", "2026-11-22T05:00:00.5Z", 5, now.Add(-time.Hour + time.Second/2), false},
		{"x", "", 0, time.Time{}, true},
		{"", "yesterday", 0, time.Time{}, true},
	} {
		o, err := logOptions(engine.LogsOptions{Tail: tt.tail, Since: tt.since}, now)
		if (err != nil) != tt.bad || err == nil && (o.Tail != tt.wantTail || !o.Since.Equal(tt.wantSince)) {
			t.Errorf("%+v: %+v, %v", tt, o, err)
		}
	}
}
