//go:build linux

package container

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// An image has links where mounts and files of the container go: they lead into
// what is mounted elsewhere in it, where a worker may write. Nothing is put there,
// neither in the container nor on the machine.
func TestHostileImage(t *testing.T) {
	eachMode(t, func(t *testing.T, mode string) {
		dir := testDir(t, mode)
		image := dir + "/image"
		put(t, image+"/bin/x", "x\n")
		put(t, dir+"/ws/there/file", "ws\n")
		put(t, dir+"/secret", "secret\n")
		for link, to := range map[string]string{
			"/run": "/ws", "/there": "/ws/there", "/file": "/ws/there/file", "/shm": "/dev/shm", "/self": "/proc/self", "/root": "/proc/self/root/ws",
			"/cwd": "/proc/1/cwd", "/sysfs": "/sys/kernel", "/gone": "/ws/nowhere", "/up": "../../ws", "/loop": "loop",
		} {
			if err := os.Symlink(to, image+link); err != nil {
				t.Fatal(err)
			}
		}
		if mode == "user" && os.Getuid() == 0 {
			err := filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error { return errors.Join(err, os.Lchown(p, userID, userID)) })
			if err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, dir+"/ws")
		type hostile struct {
			mounts []spec.Mount
			files  []spec.File
			cwd    string
		}
		var all []hostile
		for _, target := range []string{"/run", "/run/there", "/run/new", "/there", "/shm", "/shm/x", "/self/fd", "/root", "/cwd", "/sysfs", "/gone", "/gone/x", "/up/there", "/loop"} {
			all = append(all, hostile{mounts: []spec.Mount{bind(image+"/bin", target)}},
				hostile{mounts: []spec.Mount{{Type: spec.Tmpfs, Target: target, Size: 1 << 20}}})
		}
		for _, target := range []string{"/run/secret", "/run/there/file", "/file", "/there/new", "/shm/x", "/self/comm", "/gone", "/up/x"} {
			all = append(all, hostile{mounts: []spec.Mount{bind(dir+"/secret", target)}})
		}
		for _, p := range []string{"/run/hosts", "/there/file", "/shm/hosts", "/self/comm", "/gone/hosts", "/up/hosts"} {
			all = append(all, hostile{files: []spec.File{{Path: p, Data: "ours\n", Mode: 0o444}}})
		}
		for _, p := range []string{"/run/made", "/shm/made", "/gone/made"} {
			all = append(all, hostile{cwd: p})
		}
		for _, h := range all {
			c := container(mode, "exit")
			c.Root.Dir = image
			c.Limits.Shm = 1 << 20
			c.Mounts = append(append(c.Mounts, bind(dir+"/ws", "/ws")), h.mounts...)
			c.Files = h.files
			if h.cwd != "" {
				c.Process.Cwd = h.cwd
			}
			if got := run(t, mode, job{Spec: c}); !strings.Contains(got.Err, "symbolic link") {
				t.Errorf("%+v: %+v", h, got)
			}
		}
		if after := tree(t, dir+"/ws"); after != before {
			t.Errorf("on the machine:\n%s\n%s", before, after)
		}
	})
}
