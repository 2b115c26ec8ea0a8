package testnet

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"sync"
)

// counters count what arrived. Keys are "tcp 198.51.100.10:443" and the like;
// IPv6 addresses stand in brackets.
type counters struct {
	mu      sync.Mutex
	conns   map[string]int
	packets map[string]int
	hellos  map[string]int
	reqs    []Request
}

// Request is one HTTP request that a server got.
type Request struct {
	Server string `json:"server"` // address:port that it was sent to
	SNI    string `json:"sni,omitempty"`
	Host   string `json:"host"`
	Method string `json:"method"`
	Path   string `json:"path"`
}

// Counts is a snapshot of what arrived since the start or the last Reset.
type Counts struct {
	// Conns counts accepted TCP connections by "address:port".
	Conns map[string]int `json:"conns"`
	// Packets counts IP packets that came in over the link, by
	// "protocol address:port", as "udp 198.51.100.54:53", "tcp …", or
	// "icmp 198.51.100.10".
	Packets map[string]int `json:"packets"`
	// Hellos counts TLS ClientHellos by "address:port name".
	Hellos map[string]int `json:"hellos"`
	// Requests are the HTTP requests, in order.
	Requests []Request `json:"requests"`
	// Queries are the DNS queries, in order.
	Queries []Query `json:"queries"`
}

func (c *counters) init() {
	c.conns, c.packets, c.hellos, c.reqs = map[string]int{}, map[string]int{}, map[string]int{}, nil
}

func (c *counters) conn(a netip.AddrPort) {
	c.mu.Lock()
	c.conns[a.String()]++
	c.mu.Unlock()
}

func (c *counters) packet(key string) {
	c.mu.Lock()
	c.packets[key]++
	c.mu.Unlock()
}

func (c *counters) hello(a netip.AddrPort, sni string) {
	c.mu.Lock()
	c.hellos[a.String()+" "+sni]++
	c.mu.Unlock()
}

func (c *counters) request(r Request) {
	c.mu.Lock()
	if len(c.reqs) < 100_000 {
		c.reqs = append(c.reqs, r)
	}
	c.mu.Unlock()
}

// Counts returns what has arrived.
func (in *Internet) Counts() Counts {
	in.settle()
	in.count.mu.Lock()
	defer in.count.mu.Unlock()
	return Counts{
		Conns:    maps.Clone(in.count.conns),
		Packets:  maps.Clone(in.count.packets),
		Hellos:   maps.Clone(in.count.hellos),
		Requests: append([]Request{}, in.count.reqs...),
		Queries:  in.Queries(),
	}
}

// Conns returns how many TCP connections an address accepted on a port.
func (in *Internet) Conns(addr string, port uint16) int {
	in.count.mu.Lock()
	defer in.count.mu.Unlock()
	return in.count.conns[netip.AddrPortFrom(netip.MustParseAddr(addr), port).String()]
}

// Packets returns how many packets of a protocol ("tcp", "udp", "icmp") came
// for an address; port 0 counts all ports.
func (in *Internet) Packets(protocol, addr string, port uint16) int {
	in.settle()
	in.count.mu.Lock()
	defer in.count.mu.Unlock()
	a := netip.MustParseAddr(addr)
	if port != 0 {
		return in.count.packets[fmt.Sprintf("%s %s", protocol, netip.AddrPortFrom(a, port))]
	}
	return in.count.packets[fmt.Sprintf("%s %s", protocol, a)]
}

// Reset sets all counts and records to nothing.
func (in *Internet) Reset() {
	in.settle()
	in.count.mu.Lock()
	in.count.init()
	in.count.mu.Unlock()
	in.zone.forget()
}

type countingListener struct {
	net.Listener
	count *counters
}

// Accept counts the connection and makes its socket vanish with the process: an
// orphaned socket in FIN-WAIT would hold the namespace for a minute.
func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.count.conn(addrPort(c.LocalAddr()))
	tc := c.(*net.TCPConn)
	_ = tc.SetLinger(0)
	return &politeConn{TCPConn: tc}, nil
}

// politeConn closes in the usual way (FIN) when a server closes it, although a
// kill of the process resets it.
type politeConn struct{ *net.TCPConn }

func (c *politeConn) Close() error {
	_ = c.SetLinger(-1)
	return c.TCPConn.Close()
}
