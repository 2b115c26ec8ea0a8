package execmark

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNotFound means that no process has the mark: it has ended, or belongs to another
// user.
var ErrNotFound = errors.New("no process carries the mark")

// Main is `workshop-init signal MARK SIGNAL`.
func Main(args []string, _, stderr io.Writer) int {
	if len(args) != 2 || args[0] == "" {
		fmt.Fprintln(stderr, "usage: workshop-init signal MARK SIGNAL")
		return 2
	}
	if err := Signal("/proc", args[0], args[1]); err != nil {
		fmt.Fprintln(stderr, "workshop-init: error: signal:", err)
		return 1
	}
	return 0
}

// Signal sends the signal of a name ("SIGINT") to the marked process.
func Signal(proc, mark, name string) error {
	sig := unix.SignalNum(name)
	if sig == 0 {
		return fmt.Errorf("unknown signal %q", name)
	}
	pid, err := find(proc, mark)
	if err != nil {
		return err
	}
	return unix.Kill(pid, sig)
}

// find looks through proc; processes of other users can't be read and are not
// ours.
func find(proc, mark string) (int, error) {
	dirs, err := os.ReadDir(proc)
	if err != nil {
		return 0, err
	}
	want := []byte(Env + "=" + mark)
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid <= 1 {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(proc, d.Name(), "environ"))
		if err != nil || !hasEntry(environ, want) {
			continue
		}
		if parent(filepath.Join(proc, d.Name(), "stat")) == 0 {
			return pid, nil
		}
	}
	return 0, ErrNotFound
}

func hasEntry(environ, want []byte) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if bytes.Equal(entry, want) {
			return true
		}
	}
	return false
}

// parent reads the fourth field of stat (proc_pid_stat(5)); the second may
// hold spaces and parentheses. A process of an exec has parent 0: its parent
// is not in the namespace. -1 means unknown.
func parent(stat string) int {
	b, err := os.ReadFile(stat)
	if err != nil {
		return -1
	}
	_, rest, ok := strings.Cut(string(b[max(0, bytes.LastIndexByte(b, ')')):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return -1
	}
	ppid, err := strconv.Atoi(fields[1])
	if err != nil {
		return -1
	}
	return ppid
}
