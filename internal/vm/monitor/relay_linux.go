package monitor

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/link"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
)

// Outlet returns a [Spec.Relay] that connects to the outlet in the worker's room.
func Outlet(socket string) func(context.Context) (io.ReadWriteCloser, error) {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
}

// pair returns both ends of a pair of stream sockets.
func pair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}

// socketpair is [pair] with our end as a connection.
func socketpair(name string) (net.Conn, *os.File, error) {
	ours, theirs, err := pair(name)
	if err != nil {
		return nil, nil, err
	}
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return conn, theirs, nil
}

// onward passes streams on between a guest and the outlet, each with its head. An outlet
// that ended costs its streams alone, and further ones of the guest wait for the next.
type onward struct {
	link  *link.Link
	guest *mux.Mux
	ports chan []byte // the last message of the outlet
	// inward has one for each connection to a published port: who makes them can't take the
	// streams that sessions need.
	inward chan struct{}
}

func newOnward(dial func(context.Context) (io.ReadWriteCloser, error)) *onward {
	o := &onward{ports: make(chan []byte, 1), inward: make(chan struct{}, carrier.MaxStreams-dialin.MaxSessions)}
	o.link = link.New(link.Options{Dial: dial, Mux: mux.Config{Odd: true, Streams: carrier.MaxStreams, Message: o.message,
		Accept: inbound, Serve: o.serveInbound}})
	return o
}

// accept of a head: only what a guest opens.
func (o *onward) accept(head []byte) error {
	_, err := carrier.DecodeOf(head, carrier.TCP, carrier.DNS)
	return err
}

func (o *onward) serve(s *mux.Stream) {
	if t := o.link.Open(s.Head()); t != nil {
		mux.Pass(s, t)
	}
}

// inbound is accept for the outlet: a connection to a port of the worker's.
func inbound(head []byte) error {
	_, err := carrier.DecodeOf(head, carrier.Inbound)
	return err
}

func (o *onward) serveInbound(s *mux.Stream) {
	select {
	case o.inward <- struct{}{}:
		defer func() { <-o.inward }()
	default:
		_ = s.Reset()
		return
	}
	if t, err := o.guest.Open(s.Head()); err == nil {
		mux.Pass(s, t)
	}
}

// message takes ports of the policy. The guest may be slow to read: the last ones count.
func (o *onward) message(text []byte) error {
	if _, err := carrier.DecodeOf(text, carrier.Ports); err != nil {
		return err
	}
	select {
	case <-o.ports:
	default:
	}
	o.ports <- append([]byte(nil), text...)
	return nil
}

// run serves until the end of the guest's carrier.
func (o *onward) run(guest *mux.Mux) {
	o.guest = guest
	go o.link.Run()
	defer o.link.Close()
	for {
		select {
		case text := <-o.ports:
			_ = guest.Send(text) // its Run says why
		case <-guest.Done():
			return
		}
	}
}
