package docker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// asksDoor makes this program a caller without rights that is asked for the state of a
// dialIn: directory and process of the worker are its values.
const asksDoor = "WORKSHOP_TEST_ASKS_DOOR"

// Where the door can be asked it is, before the engine: a worker can stop what the
// engine starts in it (B60).
func TestDoorOf(t *testing.T) {
	if v, ok := os.LookupEnv(asksDoor); ok {
		var w worker
		if _, err := fmt.Sscan(v, &w.pid, &w.dialIn); err != nil {
			t.Fatal(err)
		}
		// hidepid shows all to group 0
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(65534, 65534, 65534), syscall.Setresuid(65534, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("state %d\n", onThisMachine.dialInOf(w))
		return
	}
	testutil.Require(t, os.Geteuid() == 0, "mounts a dialIn: run as root")
	dir := filepath.Join(t.TempDir(), "door-worker-1")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// What a worker sees, in a mount namespace of its own.
	inside := exec.Command("sh", "-c", `mount -t tmpfs tmpfs "${0%/*}" && mkdir "$0" && mount --bind "$1" "$0" && echo there && exec sleep 300`, compose.DialInDir, dir)
	inside.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := inside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inside.Process.Kill(); _ = inside.Wait() }()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal("control: no door is mounted: ", err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	pid := inside.Process.Pid
	for name, c := range map[string]struct {
		w    worker
		want dialInState
	}{
		"the worker's":                   {worker{dialIn: dir, pid: pid}, dialInHere},
		"none":                           {worker{pid: pid}, dialInGone},
		"another directory":              {worker{dialIn: dir + "-old", pid: pid}, dialInGone},
		"another process has the number": {worker{dialIn: dir, pid: os.Getpid()}, dialInGone},
		"nothing has the number":         {worker{dialIn: dir, pid: ended.Process.Pid}, dialInGone},
	} {
		if got := onThisMachine.dialInOf(c.w); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	// proc(5): 1 shows others' processes and refuses what is in them, 2 doesn't show them.
	for hidepid, want := range []dialInState{dialInHere, dialInUnknown, dialInUnknown} {
		cmd := exec.Command("sh", "-c", fmt.Sprintf(`mount -t proc -o hidepid=%d proc /proc && exec "$0" -test.run '^TestDoorOf$'`, hidepid), os.Args[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", asksDoor, pid, dir))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), fmt.Sprintf("state %d\n", want)) {
			t.Errorf("hidepid=%d: %v, %s, want state %d", hidepid, err, out, want)
		}
	}
}

// onThisMachine has its engine at a socket of this machine.
var onThisMachine = &Engine{endpoint: endpoint{host: "unix:///var/run/docker.sock"}}
