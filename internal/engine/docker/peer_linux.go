package docker

import (
	"net"
	"os"

	"github.com/llmdo/workshop/internal/lib/peercred"
)

// checkPeer refuses a server of another user: it would see what the caller sends, and say
// what it wants about what it runs. Links on the way to the socket don't matter then.
func checkPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	peer, err := peercred.Of(u)
	if err != nil {
		return err
	}
	if int(peer.Uid) != 0 && int(peer.Uid) != os.Getuid() {
		return &foreignSocketError{peer.Uid}
	}
	return nil
}
