package container

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// step is one step of making a container.
type step struct {
	name string
	do   func(*stage) error
}

// steps lists the steps in order: first what is opened from outside, then what
// requires privileges, and the filter last.
var steps = []step{
	{"itself", (*stage).itself},
	{"root", (*stage).newRoot},
	{"proc", (*stage).proc},
	{"dev", (*stage).dev},
	{"network", (*stage).network},
	{"sysctls", (*stage).sysctls},
	{"masks", (*stage).masks},
	{"sys", (*stage).sys},
	{"mounts", (*stage).mounts},
	{"files", (*stage).files},
	{"workdir", (*stage).workdir},
	{"read-only root", (*stage).readOnlyRoot},
	{"pivot", (*stage).pivot},
	{"hostname", (*stage).hostname},
	{"limits", (*stage).limits},
	{"bounding set", (*stage).boundingSet},
	{"ids", (*stage).ids},
	{"capabilities", (*stage).capabilities},
	{"keyring", (*stage).keyring},
	{"no_new_privs", (*stage).noNewPrivs},
	{"descriptors", (*stage).descriptors},
	{"enter", (*stage).enter},
	{"landlock", (*stage).landlock},
	{"signals", (*stage).signals},
	{"seccomp", (*stage).seccomp},
}

// Main is `workshop-init contain FD [network | room]`, started by Start. FD is the
// first descriptor after those of the container's program: the order is read from
// it, and the status written to the next one. With network it concurrently makes a
// network namespace, the slowest part of a start; with room it also checks for
// netfilter there. It returns only on failure. `workshop-init contain look` only
// checks for netfilter in its own namespace.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "look" {
		return look(stdout, stderr)
	}
	first := 0
	if len(args) == 1 || len(args) == 2 && (args[1] == newNetworkArg || args[1] == newRoomArg) {
		first, _ = strconv.Atoi(args[0])
	}
	if first < 3 || os.Getpid() != 1 {
		fmt.Fprintln(stderr, "workshop-init contain: to be started by a supervisor")
		return 2
	}
	// The following settings are per thread, and execve(2) keeps those of the calling
	// thread.
	runtime.LockOSThread()
	s := &stage{first: first, status: first + 1}
	if len(args) == 2 {
		s.newNetwork = make(chan namespace, 1)
		s.anyIP = args[1] == newRoomArg
		go makeNetwork(s.newNetwork, s.anyIP)
	}
	err := s.run(steps)
	text := err.Error()
	_, _ = unix.Write(s.status, []byte(string(failed)+text[:min(len(text), maxError)]))
	return 1
}

// run carries out the order. It returns only on failure.
func (s *stage) run(steps []step) error {
	o, err := readOrder(os.NewFile(uintptr(s.first), "order"))
	if err != nil {
		return err
	}
	s.order, s.c = o, o.Container
	for _, step := range steps {
		if err := step.do(s); err != nil {
			return err
		}
	}
	return s.exec()
}
