package docker

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// B2 in a real container: the denied sockets fail with EPERM, clone3 with
// ENOSYS, ordinary sockets and threads work. The control runs the same calls
// without a profile.
func TestSeccompInAContainer(t *testing.T) {
	docker := func(stdin []byte, args ...string) (string, error) {
		cmd := exec.Command("docker", args...)
		cmd.Stdin = bytes.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	_, err := docker(nil, "version")
	testutil.Require(t, err == nil && runtime.GOOS == "linux", "no docker engine answers")
	dir := t.TempDir()
	program := filepath.Join(dir, "syscalls")
	build := exec.Command("go", "build", "-o", program, "./testdata/syscalls")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	profile := filepath.Join(dir, "seccomp.json")
	if err := os.WriteFile(profile, compose.SeccompProfile(), 0o644); err != nil {
		t.Fatal(err)
	}
	image, err := docker(make([]byte, 1024), "import", "-") // an empty tar
	if err != nil {
		t.Fatal(image)
	}
	defer docker(nil, "rmi", image)

	run := func(profile string, calls ...string) map[string]string {
		t.Helper()
		args := []string{"run", "--rm", "--network", "none", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true",
			"--security-opt", "seccomp=" + profile, "--user", "65532:65532", "--mount", "type=bind,readonly,source=" + program + ",target=/p", image, "/p"}
		out, err := docker(nil, append(args, calls...)...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := map[string]string{}
		for line := range strings.Lines(out) {
			call, errno, _ := strings.Cut(strings.TrimSpace(line), " ")
			got[call] = errno
		}
		return got
	}
	const vsock, vsockHigh = "socket:40", "socket:0x100000028"
	got := run(profile, "socket:1", "socket:2", "socket:10", "socket:16", "socket:17", "socket:38", vsock, vsockHigh,
		"socket:0x100000011", "clone3:0", "unshare:0x10000000", "keyctl:0")
	for call, errno := range map[string]string{
		"socket:1": "0", "socket:2": "0", "socket:10": "0", "socket:16": "0", "threads": "0",
		"socket:17": "1", "socket:38": "1", vsock: "1", vsockHigh: "1", "socket:0x100000011": "1",
		"clone3:0": "38", "unshare:0x10000000": "1", "keyctl:0": "1",
	} {
		if got[call] != errno {
			t.Errorf("%s: errno %q; want %s", call, got[call], errno)
		}
	}
	control := run("unconfined", vsock, "clone3:0")
	if control["clone3:0"] == "38" {
		t.Error("control: clone3 is missing from this kernel, so the test shows nothing")
	}
	t.Logf("control without a profile: %v (%s is 0 where the kernel has it)", control, vsock)
}
