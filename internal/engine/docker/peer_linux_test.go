package docker

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A socket that another user serves is refused by name, whoever owns its path.
func TestSocketOfAnotherUser(t *testing.T) {
	if os.Getenv("WORKSHOP_TEST_SERVE") != "" {
		l, err := net.Listen("unix", os.Getenv("WORKSHOP_TEST_SERVE"))
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := l.Accept(); err != nil {
				return
			}
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root, to serve a socket as another user")
	}
	dir, err := os.MkdirTemp("/tmp", "peer")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	program, path := filepath.Join(dir, "test"), filepath.Join(dir, "engine.sock")
	if err := os.WriteFile(program, self, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^TestSocketOfAnotherUser$")
	cmd.Env, cmd.Dir = []string{"WORKSHOP_TEST_SERVE=" + path, "HOME=" + dir, "TMPDIR=" + dir}, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4242, Gid: 4242}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for range 100 {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	e, err := New(t.Context(), Options{Host: "unix://" + path})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, err = e.Info(t.Context())
	if err == nil || !strings.Contains(err.Error(), "uid 4242 listens there, who is neither root nor you") {
		t.Errorf("got %v, want the uid", err)
	}
}
