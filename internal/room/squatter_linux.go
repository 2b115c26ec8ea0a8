package room

import (
	"fmt"
	"os"
	"strings"

	"github.com/llmdo/workshop/internal/lib/sockets"
)

// whoHas describes the socket that occupies a port of the room. Its process is in
// another pid namespace: `ss -ltnp` in a worker shows it.
func whoHas(port uint16) string {
	out := fmt.Sprintf("port %d is taken", port)
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if s, ok := sockets.Parse(line); ok && s.At.Port() == port {
				return fmt.Sprintf("%s by a program of a worker (uid %d, at %s)", out, s.UID, s.At)
			}
		}
	}
	return out
}
