package compose

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Families 0 to 45 are allowed as in Docker's profile but for three, each with
// and without high bits that the kernel ignores.
func TestSocketFamilies(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for family := range uint64(46) {
		want := family != 17 && family != 38 && family != 40
		if got := p.allows("socket", family); got != want {
			t.Errorf("family %d: allowed = %t; want %t", family, got, want)
		}
		if p.allows("socket", family|1<<32) || p.allows("socket", family|1<<63) {
			t.Errorf("family %d is allowed with high bits", family)
		}
	}
}

// All commands of fcntl(2) that kernels have but those by which others wait; the
// high bits mean nothing to the kernel.
func TestLeases(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for command := range uint64(1100) {
		want := command < 1040 && command != 1024
		for _, name := range []string{"fcntl", "fcntl64"} {
			if p.allows(name, 3, command) != want || p.allows(name, 3, command|1<<32) != want {
				t.Errorf("%s %d: want %t", name, command, want)
			}
		}
	}
}

// Priorities, scheduling and limits: of the caller alone. The high bits mean nothing to
// the kernel.
func TestOthersKeepTheirPriority(t *testing.T) {
	var p seccompProfile
	if err := json.Unmarshal(SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	for _, c := range othersCalls {
		if p.allows(c.name, c.args...) {
			t.Errorf("%s%v is allowed", c.name, c.args)
		}
	}
	for _, c := range []struct {
		name string
		args []uint64
	}{
		{"prlimit64", []uint64{0, 0, 1}},
		{"prlimit64", []uint64{1, 0, 0}}, // a question
		{"sched_setattr", []uint64{0}},
		{"sched_setparam", []uint64{1 << 32}},
		{"sched_setscheduler", []uint64{0}},
		{"sched_setaffinity", []uint64{1}},
		{"setpriority", []uint64{0, 0, 19}},
		{"ioprio_set", []uint64{1, 0, 3 << 13}},
	} {
		if !p.allows(c.name, c.args...) {
			t.Errorf("%s%v is refused: ordinary programs would fail", c.name, c.args)
		}
	}
}

func TestSyscallListIsClean(t *testing.T) {
	names := seccompNames()
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] || strings.Trim(n, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			t.Errorf("%q stands twice or is no name", n)
		}
		seen[n] = true
	}
	for _, n := range []string{"socket", "clone", "clone3", "socketcall", "fcntl", "mount", "unshare", "setns", "bpf", "keyctl", "io_uring_setup", "ptrace", "personality", "prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler", "setpriority", "ioprio_set"} {
		if seen[n] {
			t.Errorf("%s is allowed whatever its arguments", n)
		}
	}
	for _, n := range []string{"read", "openat", "execve", "futex", "epoll_wait", "statx", "landlock_create_ruleset", "memfd_create", "renameat2"} {
		if !seen[n] {
			t.Errorf("%s is missing: ordinary programs would fail", n)
		}
	}
}

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
	profile := filepath.Join(dir, seccompFile)
	if err := os.WriteFile(profile, SeccompProfile(), 0o644); err != nil {
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
