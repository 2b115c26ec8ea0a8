package testnet

import "net"

// Serve gives each connection of l to serve, on a goroutine of its own, and
// closes it afterwards; it ends when l is closed.
func Serve(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			serve(c)
		}()
	}
}
