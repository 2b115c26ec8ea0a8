//go:build linux

package probe

import (
	"io"
	"net"
	"time"
)

// holdEvery is how often a held connection is used.
const holdEvery = 20 * time.Millisecond

// hold keeps one connection to an echo server in use, to see the effect of a policy
// change.
func hold(a args) (string, string) {
	end := time.Now().Add(a.limit)
	c, err := a.dialer().Dial("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(end)
	for time.Now().Before(end.Add(-2 * holdEvery)) {
		if err := echoed(c); err != nil {
			return seenOf(err)
		}
		time.Sleep(holdEvery)
	}
	return "kept", c.RemoteAddr().String()
}

// echoed sends a line and reads until it comes back, skipping a server's greeting.
func echoed(c net.Conn) error {
	if _, err := io.WriteString(c, "!"); err != nil {
		return err
	}
	for one := make([]byte, 1); one[0] != '!'; {
		if _, err := io.ReadFull(c, one); err != nil {
			return err
		}
	}
	return nil
}
