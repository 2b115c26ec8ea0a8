package room

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/carrier"
)

// portsTold is what a room with an outlet tells about the ports of the policy: at the
// abstract socket [carrier.PortsSocket] of its network namespace, whoever connects gets
// them, and again with each change. Whoever is in the room may know them.
type portsTold struct {
	listener net.Listener

	mu    sync.Mutex
	ports []uint16
	known bool // the guard has sent them
	peers map[net.Conn]bool
}

// maxPortPeers bounds who is told: there is one outlet, and another one after it.
const maxPortPeers = 4

func tellPorts() (*portsTold, error) {
	l, err := net.Listen("unix", carrier.PortsSocket)
	if err != nil {
		return nil, err
	}
	t := &portsTold{listener: l, peers: map[net.Conn]bool{}}
	go t.accept()
	return t, nil
}

func (t *portsTold) accept() {
	for {
		c, err := t.listener.Accept()
		if err != nil {
			return
		}
		t.mu.Lock()
		if len(t.peers) >= maxPortPeers || t.known && carrier.WritePorts(c, t.ports) != nil {
			c.Close()
		} else {
			t.peers[c] = true
			go t.watch(c)
		}
		t.mu.Unlock()
	}
}

// watch forgets a peer that closes.
func (t *portsTold) watch(c net.Conn) {
	_, _ = io.Copy(io.Discard, c)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.peers, c)
	c.Close()
}

// set tells new ports. A peer that doesn't read them is gone.
func (t *portsTold) set(ports []uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ports, t.known = ports, true
	for c := range t.peers {
		if carrier.WritePorts(c, ports) != nil {
			delete(t.peers, c)
			c.Close()
		}
	}
}

// fits returns an error if a relay can't accept at so many ports.
func (t *portsTold) fits(ports []firewall.PortRange) error {
	if n := firewall.CountPorts(ports); n > firewall.MaxCarriedPorts {
		return fmt.Errorf("the policy has %d ports besides 80 and 443, and a worker with a kernel of its own has %d at most (B28): allow fewer", n, firewall.MaxCarriedPorts)
	}
	return nil
}

// singles lists the ports of ranges.
func singles(ranges []firewall.PortRange) (list []uint16) {
	for _, p := range firewall.NormalizePorts(ranges) {
		for i := int(p.First); i <= int(p.Last); i++ {
			list = append(list, uint16(i))
		}
	}
	return list
}

func endpointPorts(endpoints map[uint16]int) (all []firewall.PortRange) {
	for p := range endpoints {
		all = append(all, firewall.PortRange{First: p, Last: p})
	}
	return all
}
