//go:build linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pidOf is the process of a program, by its path there.
func pidOf(t *testing.T, program string) int {
	t.Helper()
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(text), program+"\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			return pid
		}
	}
	t.Fatalf("%s doesn't run", program)
	return 0
}

func interfacesOf(t *testing.T, pid int) (names []string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// writableMounts are those of a process that aren't in memory, nor the kernel's own.
func writableMounts(t *testing.T, pid int) (targets []string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid)) // proc_pid_mountinfo(5)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		mount, kind, _ := strings.Cut(line, " - ")
		f, k := strings.Fields(mount), strings.Fields(kind)
		writable := strings.HasPrefix(f[5], "rw") && strings.HasPrefix(k[2], "rw")
		if writable && !slices.Contains([]string{"tmpfs", "proc", "devpts", "mqueue", "devtmpfs"}, k[0]) {
			targets = append(targets, f[4])
		}
	}
	return targets
}
