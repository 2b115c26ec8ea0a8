package control

import (
	"fmt"
	"io"
	"net"
)

// Connect is `workshop-init connect`: it connects stdin and stdout to the control
// socket at path until the guard closes the connection, after EOF on stdin and the
// last response. It returns the exit code.
func Connect(path string, stdin io.Reader, stdout, stderr io.Writer) int {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		fmt.Fprintf(stderr, "workshop-init connect: error: the guard's control: %v\n", err)
		return 1
	}
	defer c.Close()
	go func() {
		_, _ = io.Copy(c, stdin)
		_ = c.CloseWrite()
	}()
	if _, err := io.Copy(stdout, c); err != nil {
		fmt.Fprintf(stderr, "workshop-init connect: error: %v\n", err)
		return 1
	}
	return 0
}
