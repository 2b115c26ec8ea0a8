package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// requestTimeout bounds one request. A room responds in microseconds; one that doesn't
// counts as ended.
const requestTimeout = 5 * time.Second

// Client is the guard's side. It is safe for use by several goroutines; one
// request is carried out at a time.
type Client struct {
	conn    *net.UnixConn
	mu      sync.Mutex // one request at a time
	answers chan answer
	done    chan struct{}
	once    sync.Once
}

type answer struct {
	data []byte
	fds  []int
}

// Dial connects to the room that listens at path. It doesn't retry.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the room: %w", err)
	}
	client := &Client{conn: c.(*net.UnixConn), answers: make(chan answer, 1), done: make(chan struct{})}
	go client.read()
	return client, nil
}

// Done returns a channel that is closed when the room or the connection has ended.
// Everything that the room handed over must then be closed.
func (c *Client) Done() <-chan struct{} { return c.done }

// Close ends the connection. Sockets that were handed over stay open.
func (c *Client) Close() error {
	c.end()
	return nil
}

func (c *Client) end() {
	c.once.Do(func() {
		c.conn.Close()
		close(c.done)
	})
}

// Sockets requests all sockets of the room; it may be called repeatedly.
func (c *Client) Sockets() (Sockets, error) {
	rest, fds, err := c.do(request{verb: verbSockets}, -1)
	if err != nil {
		return Sockets{}, err
	}
	kind, err := parseKind(rest)
	if err == nil && !kind.enough(len(fds)) {
		err = fmt.Errorf("handover: the room sent %d sockets, not %d", len(fds), numSockets)
	}
	if err != nil {
		closeAll(fds)
		return Sockets{}, err
	}
	s := Sockets{Kind: kind}
	files, names := s.files(), s.names()
	for i, fd := range fds {
		*files[i] = os.NewFile(uintptr(fd), names[i])
	}
	return s, nil
}

// DialSocket requests a new TCP socket of the room's namespace, with which the caller
// connects to a port of 127.0.0.1 or ::1 inside the room. It is non-blocking and not
// connected; its family (SO_DOMAIN) is AF_INET6 with IPV6_V6ONLY off, or AF_INET if
// the room has no IPv6.
func (c *Client) DialSocket(port int) (*os.File, error) {
	return c.socket(verbDial, port)
}

// Listen requests the listener of an endpoint: at 127.0.0.1 inside the room, and the same
// one for each guard, so that connections wait where there is none.
func (c *Client) Listen(port int) (*os.File, error) { return c.socket(verbListen, port) }

// socket requests one socket for a port.
func (c *Client) socket(v verb, port int) (*os.File, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("handover: port %d is out of range", port)
	}
	_, fds, err := c.do(request{verb: v, port: uint16(port)}, -1)
	if err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		closeAll(fds)
		return nil, fmt.Errorf("handover: the room sent %d sockets, not 1", len(fds))
	}
	return os.NewFile(uintptr(fds[0]), string(v)+"-"+strconv.Itoa(port)), nil
}

// Redirect replaces the list of ports, other than 53, 80 and 443, that the room leads
// to the guard. A room of kind [NFTables] redirects them to the TCP socket, in one
// transaction. One of kind [AnyIP] returns a listener for each, including ports that
// were open before; with a [*TakenError], for those that it could open.
func (c *Client) Redirect(ports []firewall.PortRange) ([]Listener, error) {
	rest, fds, err := c.do(request{verb: verbRedirect, ports: firewall.NormalizePorts(ports)}, -1)
	if err != nil {
		return nil, err
	}
	open, taken, err := parseOpened(rest)
	if err == nil && len(open) != len(fds) {
		err = fmt.Errorf("handover: the room sent %d listeners for %d ports", len(fds), len(open))
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	out := make([]Listener, len(fds))
	for i, fd := range fds {
		out[i] = Listener{open[i], os.NewFile(uintptr(fd), "port-"+strconv.Itoa(int(open[i])))}
	}
	if taken != "" {
		err = &TakenError{Text: taken}
	}
	return out, err
}

// Counters requests the kernel's counters of refused packets.
func (c *Client) Counters() (Counters, error) {
	rest, fds, err := c.do(request{verb: verbCounters}, -1)
	closeAll(fds)
	if err != nil {
		return Counters{}, err
	}
	return parseCounters(rest)
}

// Keep replaces the file that the room keeps by one of [NewKept]. The caller's
// descriptor stays open.
func (c *Client) Keep(f *os.File) error { return c.send(verbKeep, f) }

// Store makes the room write the content of a file of [NewKept] to [StoredFile] in the
// directory of its socket, where it outlives all rooms and guards.
func (c *Client) Store(f *os.File) error { return c.send(verbStore, f) }

// send sends a request with a file.
func (c *Client) send(v verb, f *os.File) error {
	var err error
	if raw, rawErr := f.SyscallConn(); rawErr != nil {
		return rawErr
	} else if rawErr := raw.Control(func(fd uintptr) {
		var fds []int
		_, fds, err = c.do(request{verb: v}, int(fd))
		closeAll(fds)
	}); rawErr != nil {
		return rawErr
	}
	return err
}

// Kept returns the file that the previous guard left with the room, nil if none did.
func (c *Client) Kept() (*os.File, error) {
	rest, fds, err := c.do(request{verb: verbKept}, -1)
	switch {
	case err != nil:
		return nil, err
	case rest == "none" && len(fds) == 0:
		return nil, nil
	case rest != "" || len(fds) != 1:
		err = fmt.Errorf("handover: kept: got %d descriptors, want 1", len(fds))
	default:
		err = checkKept(fds[0])
	}
	if err != nil {
		closeAll(fds)
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), keptName), nil
}

// do sends a request, with a descriptor unless fd is -1, and returns the response.
func (c *Client) do(r request, fd int) (string, []int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(requestTimeout))
	// A room that refuses sends the reason before it closes: read the response even
	// if the request couldn't be sent.
	var oob []byte
	if fd >= 0 {
		oob = unix.UnixRights(fd)
	}
	_, _, sendErr := c.conn.WriteMsgUnix(r.encode(), oob, nil)
	timeout := time.NewTimer(requestTimeout)
	defer timeout.Stop()
	select {
	case a := <-c.answers:
		rest, err := parseAnswer(a.data)
		if err != nil {
			closeAll(a.fds)
			return "", nil, err
		}
		return rest, a.fds, nil
	case <-c.done:
		select {
		case a := <-c.answers:
			closeAll(a.fds)
			if _, err := parseAnswer(a.data); err != nil {
				return "", nil, err
			}
		default:
		}
		return "", nil, errors.Join(errors.New("the room has ended"), sendErr)
	case <-timeout.C:
		c.end() // a late response would be taken for that of the next request
		return "", nil, errors.New("the room does not respond")
	}
}

// read receives responses until the connection ends, also between requests, to detect
// the end of the room.
func (c *Client) read() {
	defer c.end()
	for {
		data, fds, err := receive(c.conn)
		if err != nil {
			return
		}
		select {
		case c.answers <- answer{data, fds}:
		case <-c.done:
			closeAll(fds)
			return
		}
	}
}

// receive reads one packet with its descriptors; a packet that is too long or has lost
// descriptors is an error.
func receive(conn *net.UnixConn) ([]byte, []int, error) {
	data := make([]byte, maxPacket)
	oob := make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := conn.ReadMsgUnix(data, oob)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 && oobn == 0 {
		return nil, nil, io.EOF
	}
	fds, err := parseRights(oob[:oobn])
	if err == nil && flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		err = errors.New("handover: the packet is too long")
	}
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	return data[:n], fds, nil
}

func parseRights(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		got, err := unix.ParseUnixRights(&m)
		if err != nil {
			return fds, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
