package container

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/room/kernelsupport"
)

// instead is what a room has where netfilter lacks something.
type instead struct {
	lacks   bool
	packets []int // none: they can't be had, and the room says what follows
}

// withoutNetfilter looks for netfilter in the network namespace of the calling
// thread. Where it isn't there, or doesn't answer, it makes what the room does
// without it; whether it does, the room's program decides.
func withoutNetfilter() (n instead) {
	missing, err := kernelsupport.Missing(kernelsupport.Extensions())
	if n.lacks = len(missing) > 0 || err != nil; n.lacks {
		n.packets, _ = kernelsupport.PacketSockets()
	}
	return n
}

// args are what `workshop-init room` is told of it.
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

// look prints the kernel modules that a room by netfilter misses, in one line.
func look(stdout, stderr io.Writer) int {
	missing, err := kernelsupport.Missing(kernelsupport.Extensions())
	if err != nil && !errors.Is(err, kernelsupport.ErrNobody) {
		fmt.Fprintln(stderr, "workshop-init contain: error:", err)
		return 1
	}
	fmt.Fprintln(stdout, strings.Join(missing, " "))
	return 0
}
