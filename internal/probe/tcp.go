//go:build linux

package probe

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialer connects with the options device=, bind= and from=. The last is also for the
// look-ups before.
func (a args) dialer() *net.Dialer {
	d := &net.Dialer{Timeout: a.limit}
	if from, err := netip.ParseAddrPort(a.opt("from", "")); err == nil && from.Addr().Is4() {
		d.Control = func(network, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { bindFrom(int(fd), network, from) })
		}
		look := *d
		d.Resolver = &net.Resolver{PreferGo: true, Dial: look.DialContext}
	}
	if ip := a.opt("bind", ""); ip != "" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(ip)}
	}
	if dev := a.opt("device", ""); dev != "" {
		d.Control = func(_, _ string, c syscall.RawConn) error {
			var err error
			if e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), dev) }); e != nil {
				return e
			}
			return err
		}
	}
	return d
}

// bindFrom gives a socket its source: over IPv4 an address of the loopback, over IPv6,
// where there is one only, the port. What is tried counts more than where from, so it
// goes on with another source after an error.
func bindFrom(fd int, network string, from netip.AddrPort) {
	if strings.HasSuffix(network, "4") {
		_ = unix.Bind(fd, &unix.SockaddrInet4{Addr: from.Addr().As4()})
	} else {
		_ = unix.Bind(fd, &unix.SockaddrInet6{Port: int(from.Port())})
	}
}

func connect(a args) (string, string) {
	c, err := a.dialer().Dial("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	return "open", c.LocalAddr().String() + " to " + c.RemoteAddr().String()
}

// tcp waits for data: a redirected connection opens before the guard has decided about
// it, so only the first data is conclusive.
func tcp(a args) (string, string) {
	c, err := a.dialer().Dial("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	if send := a.opt("send", ""); send != "" {
		if _, err := io.WriteString(c, send); err != nil {
			return seenOf(err)
		}
	}
	n, err := strconv.Atoi(a.opt("bytes", "1"))
	if err != nil || n < 1 {
		return "ERROR", "bytes= is not a number"
	}
	buf := make([]byte, max(n, 512))
	if n, err = io.ReadAtLeast(c, buf, n); n == 0 {
		return seenOf(err)
	}
	return "data", text(buf[:n])
}

// loop shows that sockets and loopback work at all, as the control for denials.
func loop(a args) (string, string) {
	l, err := net.Listen("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "loop")
			c.Close()
		}
	}()
	c, err := net.DialTimeout("tcp", l.Addr().String(), a.limit)
	if err != nil {
		return seenOf(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(a.limit))
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "loop" {
		return seenOf(fmt.Errorf("read %q: %w", got, err))
	}
	return "ok", l.Addr().String()
}

func serve(a args) (string, string) {
	l, err := net.Listen("tcp", a.pos[0])
	if err != nil {
		return seenOf(err)
	}
	fmt.Fprintf(a.stdout, `{"probe":"serve","seen":"listening","detail":%q}`+"\n", l.Addr().String())
	body := a.opt("text", "served by a worker\n")
	for {
		c, err := l.Accept()
		if err != nil {
			return seenOf(err)
		}
		go respond(c, body)
	}
}

// respond answers one request. http.Server would answer more, and be a fiftieth
// of the binary.
func respond(c net.Conn, body string) {
	defer c.Close()
	req, err := http.ReadRequest(bufio.NewReader(c))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, req.Body) // closing with unread data would reset the connection
	length := len(body)
	if req.Method == http.MethodHead {
		body = ""
	}
	fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", length, body)
}

func bind(a args) (string, string) {
	if a.pos[0] == "udp" {
		c, err := net.ListenPacket("udp", a.pos[1])
		if err == nil {
			c.Close()
		}
		return seenOf(err)
	}
	l, err := net.Listen("tcp", a.pos[1])
	if err == nil {
		l.Close()
	}
	return seenOf(err)
}
