package container

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// step is a part of what makes a container, in the order of steps.
type step struct {
	name string
	do   func(*stage) error
}

// steps: what can be opened from outside comes first, then what only a
// privileged process can do, and the filter last.
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

// Main is `workshop-init contain FD [network | room]`: what Start starts. FD is the
// first descriptor after those of the container's program: there the order is
// read; the next one takes the status. With network it makes a network
// namespace meanwhile: nothing else of a start takes the kernel so long. With
// room it also looks there whether netfilter is. It returns only when something
// failed. `workshop-init contain look` only looks, where it is started.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "look" {
		return look(stdout, stderr)
	}
	first := 0
	if len(args) == 1 || len(args) == 2 && (args[1] == newNetworkArg || args[1] == newRoomArg) {
		first, _ = strconv.Atoi(args[0])
	}
	if first < 3 || os.Getpid() != 1 {
		fmt.Fprintln(stderr, "workshop-init contain: a supervisor starts this, with an order")
		return 2
	}
	// What is set from here on is the thread's, and execve(2) takes it from the
	// thread that calls it.
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

// run carries the order out. It returns when something failed.
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
