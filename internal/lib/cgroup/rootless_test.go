//go:build linux

package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// delegatedEnv says that the tests run where groups were delegated.
const delegatedEnv = "CGROUP_TEST_DELEGATED"

var command = regexp.MustCompile(`sudo sh -c '.*'`)

// TestRootless: an ordinary user has no place for groups, and is told a command
// that makes one. With that command the same limits hold as for root.
func TestRootless(t *testing.T) {
	testutil.Require(t, os.Getuid() == 0, "it needs root to become somebody else")
	self := anyoneRuns(t)
	look := exec.Command(self)
	look.Env = append(os.Environ(), roleEnv+"=find")
	look.SysProcAttr = asOrdinary()
	out, err := look.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	t.Log(text)
	for _, want := range []string{"B5", "memory: ", "swap: ", "cpu: ", "pids: ", "isn't writable for uid 1000", "--without-limits"} {
		if !strings.Contains(text, want) {
			t.Errorf("the refusal doesn't say %q", want)
		}
	}
	do := command.FindString(text)
	if do == "" {
		t.Fatal("no command")
	}
	t.Cleanup(func() { removeDelegated(t) })
	// The user's shell, and sudo as the command's word.
	shell := exec.Command("sh", "-euc", "sudo() { \"$@\"; }\n"+do+"\nexec "+self+` "$@"`, "sh", "-test.run=^TestReal", "-test.v")
	shell.Env = append(os.Environ(), roleEnv+"=drop", delegatedEnv+"=1")
	out, err = shell.CombinedOutput()
	t.Logf("as uid %d:\n%s", ordinary, out)
	if err != nil || !strings.Contains(string(out), "PASS: TestRealMemory") {
		t.Error(err)
	}
}

// drop runs the tests as the ordinary user, where this process is.
func drop(string) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), roleEnv+"=")
	cmd.SysProcAttr = asOrdinary()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func removeDelegated(t *testing.T) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	own2, own1 := parseSelf(read("/proc/self/cgroup"))
	for _, m := range parseMounts(string(b)) {
		own := own2
		for _, c := range m.controllers {
			own = own1[c]
		}
		base, _ := m.dirOf(own)
		for _, dir := range []string{base, m.point} {
			for _, sub := range []string{groupsDir, callersDir, ""} {
				dir := filepath.Join(dir, fmt.Sprintf("u%d", ordinary), sub)
				if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
					t.Errorf("%s: %v", dir, err)
				}
			}
		}
	}
}
