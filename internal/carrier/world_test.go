//go:build linux

package carrier_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

// The test binary is also the relay and the outlet, each a process of its own in its own
// network namespace.
func TestMain(m *testing.M) {
	switch os.Getenv("CARRIER_TEST_ROLE") {
	case "relay":
		os.Exit(testcarrier.Main(os.Args[1:]))
	case "outlet":
		os.Exit(outlet.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// world is a namespace with a relay, in which every IPv4 address is a worker's own as in a
// sandbox, and one with an outlet, in which servers take what is dialled at any address.
type world struct {
	testing.TB
	inside, outside *testnet.NS
	socket          string
	inner, outlet   *exec.Cmd // the last relay and outlet
	inbound         []string
	memory          *testutil.MemoryGroup // of the outlet; nil: none of its own
}

func newWorld(t testing.TB, inbound ...string) *world {
	t.Helper()
	w := buildWorld(t, inbound...)
	w.startRelay("53", "80", "443", "536")
	return w
}

func buildWorld(t testing.TB, inbound ...string) *world {
	t.Helper()
	w := newNamespaces(t, inbound...)
	w.startOutlet()
	return w
}

func newNamespaces(t testing.TB, inbound ...string) *world {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "needs root (network namespaces)")
	w := &world{TB: t, socket: filepath.Join(t.TempDir(), "out.sock"), inbound: inbound}
	for _, ns := range []**testnet.NS{&w.inside, &w.outside} {
		n, err := testnet.NewNS()
		if err != nil {
			testutil.Require(t, false, "network namespaces: "+err.Error())
		}
		t.Cleanup(func() { n.Close() })
		if err := n.Do(testcarrier.EveryAddress); err != nil {
			t.Fatal(err)
		}
		*ns = n
	}
	return w
}

func (w *world) start(ns *testnet.NS, role string, args ...string) *exec.Cmd {
	w.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "CARRIER_TEST_ROLE="+role, "GORACE=halt_on_error=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}
	begin := cmd.Start
	if w.memory != nil && role == "outlet" {
		begin = func() error { return w.memory.Start(cmd) }
	}
	if err := ns.Do(begin); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { stop(cmd) })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.HasPrefix(line, "MADE ") {
			continue
		}
		if line != "READY\n" {
			w.Fatalf("%s said %q, %v", role, line, err)
		}
		return cmd
	}
}

func stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func (w *world) startOutlet() {
	args := []string{"--socket", w.socket}
	for _, p := range w.inbound {
		args = append(args, "--inbound", p)
	}
	w.outlet = w.start(w.outside, "outlet", args...)
}

func (w *world) startRelay(ports ...string) {
	w.inner = w.start(w.inside, "relay", append([]string{w.socket}, ports...)...)
}

// listen listens in a namespace; the listener is closed with the test.
func (w *world) listen(ns *testnet.NS, at string) (l *net.TCPListener) {
	w.Helper()
	err := ns.Do(func() error {
		x, err := net.Listen("tcp4", at)
		if err == nil {
			l = x.(*net.TCPListener)
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	return l
}

// serve calls f with each connection to a port outside.
func (w *world) serve(port int, f func(*net.TCPConn)) {
	w.Helper()
	l := w.listen(w.outside, "0.0.0.0:"+strconv.Itoa(port))
	go func() {
		for {
			c, err := l.AcceptTCP()
			if err != nil {
				return
			}
			go func() { defer c.Close(); f(c) }()
		}
	}()
}

// dial dials in a namespace.
func (w *world) dial(ns *testnet.NS, network, to string) (net.Conn, error) {
	return w.dialFrom(ns, network, "", to)
}

// dialFrom dials from an address; empty: any.
func (w *world) dialFrom(ns *testnet.NS, network, from, to string) (c net.Conn, err error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	switch a := net.ParseIP(from); {
	case a == nil:
	case network == "udp4":
		d.LocalAddr = &net.UDPAddr{IP: a}
	default:
		d.LocalAddr = &net.TCPAddr{IP: a}
	}
	err = ns.Do(func() error {
		c, err = d.Dial(network, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	w.Cleanup(func() { c.Close() })
	return c, nil
}

func (w *world) dialInside(to string) *net.TCPConn {
	w.Helper()
	c, err := w.dial(w.inside, "tcp4", to)
	if err != nil {
		w.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// said returns what a connection says until its end.
func (w *world) said(to string) string {
	w.Helper()
	b, err := io.ReadAll(w.dialInside(to))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// whereTo tells a connection which address it dialled, as seen outside.
func whereTo(c *net.TCPConn) {
	fmt.Fprintf(c, "%s from %s", c.LocalAddr(), c.RemoteAddr().(*net.TCPAddr).IP)
}

// wasReset reports whether a connection ends with a reset.
func wasReset(c net.Conn) bool {
	_, err := io.Copy(io.Discard, c)
	return errors.Is(err, unix.ECONNRESET)
}

// tellPorts serves the room's ports outside, to one outlet after the other.
func (w *world) tellPorts() func(ports ...uint16) {
	w.Helper()
	var l net.Listener
	if err := w.outside.Do(func() (err error) { l, err = net.Listen("unix", carrier.PortsSocket); return err }); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { l.Close() })
	lists := make(chan []uint16)
	go func() {
		var last []uint16
		for {
			c, err := l.Accept()
			for err == nil {
				if err = carrier.WritePorts(c, last); err == nil {
					last = <-lists
				}
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}()
	return func(ports ...uint16) { lists <- ports }
}

func repeat(text string, n int) []byte { return bytes.Repeat([]byte(text), n) }
