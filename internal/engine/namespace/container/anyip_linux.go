package container

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// instead is what a room gets if the kernel lacks a part of netfilter.
type instead struct {
	lacks   bool
	packets []int // packet sockets; none: not permitted, and the room reports the consequence
}

// withoutNetfilter checks for netfilter in the network namespace of the calling
// thread. If that is missing or doesn't respond, it makes the sockets for a room
// without it; the room's program decides whether to use them.
func withoutNetfilter() (n instead) {
	missing, err := kernelsupport.Missing(kernelsupport.Extensions())
	if n.lacks = len(missing) > 0 || err != nil; n.lacks {
		n.packets, _ = kernelsupport.PacketSockets()
	}
	return n
}

// args returns the corresponding arguments of `workshop-init room`.
func (n instead) args() []string {
	if !n.lacks {
		return nil
	}
	args := []string{"--fallback", "anyip"}
	list := make([]string, len(n.packets))
	for i, fd := range n.packets {
		list[i] = strconv.Itoa(fd)
	}
	if len(list) > 0 {
		args = append(args, "--packet-fds", strings.Join(list, ","))
	}
	return args
}

// look prints the kernel modules missing for a room with netfilter, in one line.
func look(stdout, stderr io.Writer) int {
	missing, err := kernelsupport.Missing(kernelsupport.Extensions())
	if err != nil && !errors.Is(err, kernelsupport.ErrNobody) {
		fmt.Fprintln(stderr, "workshop-init contain: error:", err)
		return 1
	}
	fmt.Fprintln(stdout, strings.Join(missing, " "))
	return 0
}
