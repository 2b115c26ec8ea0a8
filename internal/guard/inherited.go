package guard

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// descriptors are the sockets inherited from a supervisor by a guard in the
// machine's network namespace: there it opens no listening socket itself.
type descriptors struct {
	control int            // 0 for none
	inbound map[uint16]int // by the port of the policy (firewall.Publish.Listen)
}

// any reports whether the guard inherited sockets, and so must open none.
func (d *descriptors) any() bool { return d.control > 0 || len(d.inbound) > 0 }

// complete refuses a policy whose published ports differ from the inherited
// sockets.
func (d *descriptors) complete(publish []firewall.Publish) error {
	if !d.any() {
		return nil
	}
	known := map[uint16]bool{}
	for _, p := range publish {
		known[p.Listen] = true
		if _, ok := d.inbound[p.Listen]; !ok {
			return fmt.Errorf("published port %d: --inbound-fd %d=N is missing, and on the machine's own network the guard opens no port itself", p.Target, p.Listen)
		}
	}
	for port := range d.inbound {
		if !known[port] {
			return fmt.Errorf("--inbound-fd %d: the policy publishes no such port", port)
		}
	}
	return nil
}

// inboundOr returns the inherited socket of a port, or calls listen if none was
// inherited at all.
func (d *descriptors) inboundOr(port uint16, listen func(uint16) (*net.TCPListener, error)) (*net.TCPListener, error) {
	if !d.any() {
		return listen(port)
	}
	fd := d.inbound[port]
	if on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
		return nil, fmt.Errorf("descriptor %d does not listen", fd)
	}
	f := os.NewFile(uintptr(fd), "inbound")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, fmt.Errorf("descriptor %d is not a TCP socket", fd)
	}
	return t, nil
}

var errDescriptor = errors.New("not the number of a descriptor")

// take parses the number of a descriptor and refuses one that is taken.
func (d *descriptors) take(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n < 3 {
		return 0, errDescriptor
	}
	fd := int(n)
	if slices.Contains(slices.Collect(maps.Values(d.inbound)), fd) || fd == d.control {
		return 0, errors.New("the descriptor is given twice")
	}
	return fd, nil
}

// controlFD is the flag --control-fd.
type controlFD struct{ d *descriptors }

func (controlFD) String() string { return "" }

func (f controlFD) Set(s string) (err error) {
	f.d.control, err = f.d.take(s)
	return err
}

// inboundFD is the flag --inbound-fd.
type inboundFD struct{ d *descriptors }

func (inboundFD) String() string { return "" }

func (f inboundFD) Set(s string) error {
	port, fd, _ := strings.Cut(s, "=")
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil || p == 0 {
		return errors.New("not of the form PORT=N")
	}
	n, err := f.d.take(fd)
	if err != nil {
		return err
	}
	if f.d.inbound == nil {
		f.d.inbound = map[uint16]int{}
	}
	if _, twice := f.d.inbound[uint16(p)]; twice {
		return errors.New("the port is given twice")
	}
	f.d.inbound[uint16(p)] = n
	return nil
}

// given reports whether a flag was set.
func given(fs *flag.FlagSet, name string) (found bool) {
	fs.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}
