//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// ordinaryUser is a uid that needs no account.
const ordinaryUser = 61000

// TestDemoWithoutDocker runs what `make demo` runs, as root and as an ordinary
// user: every line is as it should be.
func TestDemoWithoutDocker(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "needs root, to be somebody else")
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(bin, "workshop"))
	testutil.Require(t, err == nil, "bin/workshop is not built: make build")
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	demo := filepath.Join(dir, "demo")
	build := exec.Command("go", "build", "-o", demo, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, uid := range map[string]int{"root": 0, "user": ordinaryUser} {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(dir, name)
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(home, uid, uid); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, demo, "-bin", bin)
			cmd.Dir = home
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if n := strings.Count(string(out), "✓"); n != len(allowed)+len(refused)+3 || strings.Contains(string(out), "✗") {
				t.Errorf("%d lines are as they should be:\n%s", n, out)
			}
			if left, _ := filepath.Glob(filepath.Join(home, "workshop-demo-*")); left != nil {
				t.Errorf("left: %v", left)
			}
			if left, _ := filepath.Glob(filepath.Join(home, ".local/state/workshop/namespace/*")); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}
