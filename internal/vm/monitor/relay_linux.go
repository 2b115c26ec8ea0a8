package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/link"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// RelayFD is the descriptor at which a relay's process has its connection.
const RelayFD = 3

// Relay returns a [Spec.Relay] that starts this program's command relay, once for each
// connection. start starts it, in the network namespace of the worker's room; nil: as it is.
func Relay(start func(*exec.Cmd) error) func(context.Context) (io.ReadWriteCloser, error) {
	if start == nil {
		start = (*exec.Cmd).Start
	}
	return func(context.Context) (io.ReadWriteCloser, error) {
		conn, theirs, err := socketpair("relay")
		if err != nil {
			return nil, err
		}
		defer theirs.Close()
		cmd := exec.Command("/proc/self/exe", "relay")
		cmd.Env, cmd.Dir, cmd.Stderr = []string{}, "/", os.Stderr
		cmd.ExtraFiles = []*os.File{theirs}
		if err := start(cmd); err != nil {
			conn.Close()
			return nil, err
		}
		go cmd.Wait()
		return process{conn, cmd.Process}, nil
	}
}

// process is a connection to a process, which ends with it.
type process struct {
	net.Conn
	*os.Process
}

func (p process) Close() error { return errors.Join(p.Conn.Close(), p.Process.Kill()) }

// socketpair returns our end of one, and the other process's.
func socketpair(name string) (net.Conn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), name), os.NewFile(uintptr(pair[1]), name)
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return conn, theirs, nil
}

// onward passes a guest's streams on to its relay, each with its head. A relay that ended
// costs its streams alone, and further ones wait for the next relay.
type onward struct {
	link  *link.Link
	open  atomic.Int32
	ports chan []byte // the last message of the relay
}

func newOnward(dial func(context.Context) (io.ReadWriteCloser, error)) *onward {
	o := &onward{ports: make(chan []byte, 1)}
	o.link = link.New(link.Options{Dial: dial, Mux: mux.Config{Odd: true, Streams: carrier.MaxStreams, Message: o.message}})
	return o
}

// accept of a head: only what a guest opens.
func (o *onward) accept(head []byte) error {
	_, err := carrier.DecodeOf(head, carrier.TCP, carrier.DNS)
	return err
}

func (o *onward) serve(s *mux.Stream) {
	defer o.open.Add(-1)
	n := int(o.open.Add(1))
	if t := o.link.Open(s.Head()); t != nil {
		carrier.Pass(s, t, buffers.For(n, carrier.MaxStreams))
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
