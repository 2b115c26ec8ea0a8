package testnet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// Addresses with a meaning. Every other address of the ranges has the same
// servers but DNS.
const (
	DNS      = "198.51.100.53"
	DNS2     = "198.51.100.54"
	DNSv6    = "2001:db8:1::53"
	Allowed  = "198.51.100.10" // allowed.example.org
	Allowed6 = "2001:db8:1::10"
	Denied   = "198.51.100.11" // denied.example.org
	Denied6  = "2001:db8:1::11"
	Evil     = "198.51.100.66" // evil.example.net: where the attacker listens
	Evil6    = "2001:db8:1::66"
	SSH      = "198.51.100.22" // ssh.example.org
	SSH6     = "2001:db8:1::22"
)

// EchoPorts are the TCP ports that send back what they get.
var EchoPorts = []uint16{7, 2222, 8000, 8001, 8005, 8010, 9000}

// Options says where the test internet is joined. The zero value joins it to
// the network namespace of the process; there can be only one at a time, and a
// second one waits for the first to end.
type Options struct {
	// Near is the namespace to join; nil is the process's own.
	Near *NS
	// Control is the path of a unix socket that serves [Internet.Control];
	// empty: none.
	Control string
}

// Internet is a running test internet.
type Internet struct {
	// CA is the certificate authority of every TLS server, as PEM.
	CA []byte
	// IPv6 says whether 2001:db8:1::/48 is reachable.
	IPv6 bool

	ns    *NS
	ca    *authority
	zone  zone
	count counters
	meter *meter

	mu      sync.Mutex
	sites   map[string]http.Handler // by Host
	own     map[string]*authority   // of hosts that in.ca doesn't vouch for
	closers []func()
	closed  bool
}

// New starts a test internet that ends with the test. The test is skipped (or
// fails, see testutil) where the process may not make network namespaces.
func New(t testing.TB, o Options) *Internet {
	t.Helper()
	testutil.Require(t, os.Geteuid() == 0, "the test internet needs root (network namespaces)")
	in, err := Start(context.Background(), o)
	if errors.Is(err, unix.EPERM) {
		testutil.Require(t, false, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// Start starts a test internet; ctx bounds the wait for another one that is
// joined to the same namespace.
func Start(ctx context.Context, o Options) (*Internet, error) {
	in := &Internet{}
	in.zone.init()
	in.count.init()
	if err := in.start(ctx, o); err != nil {
		in.Close()
		return nil, fmt.Errorf("test internet: %w", err)
	}
	return in, nil
}

func (in *Internet) start(ctx context.Context, o Options) (err error) {
	near := o.Near
	if near == nil {
		if near, err = CurrentNS(); err != nil {
			return err
		}
		defer near.Close()
	}
	lock, err := occupy(ctx, near)
	if err != nil {
		return err
	}
	in.onClose(func() { lock.Close() })
	if in.ca, err = newAuthority(); err != nil {
		return err
	}
	in.CA = in.ca.pem
	if in.ns, err = NewNS(); err != nil {
		return err
	}
	in.onClose(func() { in.ns.Close() })
	// The link needs a handle of its own: near may be closed when it is removed.
	keep, err := dup(near)
	if err != nil {
		return err
	}
	in.onClose(func() { keep.Close() })
	ipv6, remove, err := join(keep, in.ns)
	if err != nil {
		return err
	}
	in.IPv6 = ipv6
	in.onClose(remove)
	for _, serve := range []func() error{in.startMeter, in.startPackages, in.startDNS, in.startWeb, in.startTCP, in.startUDP} {
		if err := in.ns.Do(serve); err != nil {
			return err
		}
	}
	if o.Control != "" {
		return in.startControl(o.Control)
	}
	return nil
}

// Close ends all servers and removes link and namespace.
func (in *Internet) Close() {
	in.mu.Lock()
	closers := in.closers
	in.closers, in.closed = nil, true
	in.mu.Unlock()
	for i := len(closers) - 1; i >= 0; i-- {
		closers[i]()
	}
}

// NS is the namespace of the servers, for a test that wants its own in there.
func (in *Internet) NS() *NS { return in.ns }

// Roots is a pool with the CA.
func (in *Internet) Roots() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(in.CA)
	return p
}

func (in *Internet) onClose(f func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closers = append(in.closers, f)
}

// occupy waits until no other test internet is joined to the namespace. The
// lock is an abstract unix socket: such names belong to the network namespace
// and vanish with the process, in a container as on the host.
func occupy(ctx context.Context, near *NS) (net.Listener, error) {
	for {
		var l net.Listener
		err := near.Do(func() (err error) { l, err = net.Listen("unix", "@workshop-testnet"); return err })
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.New("another test internet is joined to this network namespace; wait for its tests to end")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func dup(n *NS) (*NS, error) {
	fd, err := unix.FcntlInt(n.file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &NS{file: os.NewFile(uintptr(fd), "netns")}, nil
}

// listen opens a TCP listener on a port of every address; it must run inside
// the namespace.
func (in *Internet) listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: freebind}
	l, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	in.onClose(func() { l.Close() })
	return &countingListener{Listener: l, count: &in.count}, nil
}

func (in *Internet) any() string {
	if in.IPv6 {
		return "[::]"
	}
	return "0.0.0.0"
}

// freebind lets a socket bind an address that the namespace has by a local
// route only (IP_FREEBIND ip(7), IPV6_FREEBIND linux/in6.h).
func freebind(network, address string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	})
}

func addrPort(a net.Addr) netip.AddrPort {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
