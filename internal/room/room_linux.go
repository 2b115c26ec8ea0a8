package room

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/room/handover"
)

// Options are the options of a room.
type Options struct {
	// Name of the room; the guard knows it by the socket's path.
	Name string
	// Open redirects every TCP connection to the guard.
	Open bool
	// Dir holds the socket <Name>.sock.
	Dir string
	// GuardUID is the user that the guard runs as.
	GuardUID uint32
	// AnyIP permits a room without netfilter if the kernel lacks a part of it; see
	// docs/decisions/anyip.md.
	AnyIP bool
	// Outlet tells the ports of the policy to an outlet in the room (package carrier).
	Outlet bool
	// EveryAddress is for a sandbox that copies the addresses of lo: they include all of
	// IPv4, and IPv6 has no route, as its addresses are none of such a sandbox.
	EveryAddress bool
	// Packets are packet sockets of [kernelsupport.PacketSockets] for such a room.
	Packets []int
	// Log, if not nil, gets lines about guards that connect and disconnect.
	Log func(string)
}

// Room is a namespace turned into a room. It keeps duplicates of all sockets, so that
// the next guard gets the same ones.
type Room struct {
	o        Options
	families families
	fds      []int
	any      *anyIP     // nil: netfilter redirects
	told     *portsTold // nil: no outlet

	mu        sync.Mutex
	ports     []firewall.PortRange // redirected, other than 53, 80 and 443
	endpoints map[uint16]int       // their listeners
}

// New turns the namespace of the process into a room. After an error the namespace
// leads nowhere and nothing is handed over.
func New(o Options) (*Room, error) {
	r, err := newRoom(o)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		err = fmt.Errorf("%w (the room needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE)", err)
	}
	return r, err
}

func newRoom(o Options) (*Room, error) {
	if !firewall.ValidRoomName(o.Name) {
		return nil, fmt.Errorf("%q is not valid as a room name", o.Name)
	}
	if err := checkPorts(); err != nil {
		return nil, err
	}
	up, err := checkLinks()
	if err != nil {
		return nil, err
	}
	if !up {
		if err := setLoopbackUp(); err != nil {
			return nil, err
		}
	}
	fs, v6Routes, err := familiesHere()
	if err != nil {
		return nil, err
	}
	// Rules before routes: at no moment can a packet go anywhere but by the rules.
	// The policy's ports are refused until the guard sends them.
	err = loadRules(firewall.NewRuleset(firewall.RulesetOptions{Open: o.Open}), fs)
	if lack := new(lackError); o.AnyIP && !o.Outlet && errors.As(err, &lack) {
		return newAnyIP(o, fs, v6Routes, lack)
	}
	if err != nil {
		return nil, err
	}
	closeFDs(o.Packets)
	if o.EveryAddress {
		v6Routes = false
		if err := addEveryAddress(); err != nil {
			return nil, err
		}
	}
	if err := routes(fs, v6Routes, defaultRoute); err != nil {
		return nil, err
	}
	fds, err := openSockets(fs)
	if err != nil {
		return nil, err
	}
	r := &Room{o: o, families: fs, fds: fds}
	if o.Outlet {
		if r.told, err = tellPorts(); err != nil {
			r.Close()
			return nil, err
		}
	}
	return r, nil
}

// routes adds a route for each family with addresses; without one, connections fail at
// once with EADDRNOTAVAIL.
func routes(fs families, v6 bool, route func(firewall.Family) error) error {
	for _, f := range fs {
		if f == firewall.V6 && !v6 {
			continue
		}
		if err := route(f); err != nil {
			return err
		}
	}
	return nil
}

// Serve hands the sockets over to guards until stop is closed; ready is called
// once guards can connect.
func (r *Room) Serve(ready func(), stop <-chan struct{}) error {
	l, err := handover.Listen(filepath.Join(r.o.Dir, r.o.Name+".sock"))
	if err != nil {
		return err
	}
	s := &handover.Server{Handler: r, UID: r.o.GuardUID, Log: r.o.Log, Stored: filepath.Join(r.o.Dir, handover.StoredFile)}
	go func() {
		<-stop
		l.Close()
	}()
	ready()
	return s.Serve(l)
}

// Close closes the room's duplicates of the sockets. Rules and routes stay.
func (r *Room) Close() {
	closeFDs(r.fds)
	r.fds = nil
	for _, fd := range r.endpoints {
		unix.Close(fd)
	}
	r.endpoints = nil
	if r.any != nil {
		r.any.close()
	}
	if r.told != nil {
		r.told.listener.Close()
	}
}

func closeFDs(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

// Sockets implements [handover.Handler].
func (r *Room) Sockets() (handover.Kind, []int, error) {
	if r.any != nil {
		return handover.AnyIP, r.fds, nil
	}
	return handover.NFTables, r.fds, nil
}

// Dial implements [handover.Handler]: a socket with which the guard connects
// to a worker's port.
func (r *Room) Dial(port uint16) (int, error) {
	if port >= firewall.PortDNS && port <= firewall.PortProxy {
		return -1, fmt.Errorf("port %d belongs to the guard", port)
	}
	fd, err := roomSocket(r.families, unix.SOCK_STREAM)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// Listen implements [handover.Handler]: the listener of an endpoint, at 127.0.0.1 alone.
func (r *Room) Listen(port uint16) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if fd, ok := r.endpoints[port]; ok {
		return fd, nil
	}
	switch {
	case port < firewall.FirstEndpoint || port > firewall.LastEndpoint:
		return -1, fmt.Errorf("port %d is not one of endpoints", port)
	case len(r.endpoints) >= firewall.MaxEndpoints:
		return -1, fmt.Errorf("there are %d endpoints already", len(r.endpoints))
	}
	fd, err := listenerAt(families{firewall.V4}, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		return -1, fmt.Errorf("listen on port %d: %w", port, err)
	}
	if r.endpoints == nil {
		r.endpoints = map[uint16]int{}
	}
	r.endpoints[port] = fd
	r.tell()
	return fd, nil
}

// Redirect implements [handover.Handler].
func (r *Room) Redirect(ports []firewall.PortRange) (handover.Opened, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// 53, 80 and 443 have their own rules or listeners.
	ports = firewall.SubtractPorts(ports, []firewall.PortRange{{First: 53, Last: 53}, {First: 80, Last: 80}, {First: 443, Last: 443}})
	if len(ports) > firewall.MaxRedirects {
		return handover.Opened{}, errors.New("too many port ranges")
	}
	ports = firewall.NormalizePorts(ports)
	if r.any != nil {
		return r.any.open(r.families, ports), nil
	}
	if r.told != nil {
		if err := r.told.fits(ports); err != nil {
			return handover.Opened{}, err
		}
	}
	if slices.Equal(ports, r.ports) {
		r.tell()
		return handover.Opened{}, nil
	}
	change := replaceNAT
	if len(r.ports) == 0 && !r.o.Open {
		change = appendNAT // the first list of a guard
	}
	if err := change(firewall.RulesetOptions{Ports: ports, Open: r.o.Open}, r.families); err != nil {
		return handover.Opened{}, err
	}
	r.ports = ports
	r.tell()
	return handover.Opened{}, nil
}

// tell tells an outlet where its relay accepts, besides 53, 80, 443 and the guard's proxy.
func (r *Room) tell() {
	if r.told != nil {
		r.told.set(singles(append(slices.Clone(r.ports), endpointPorts(r.endpoints)...)))
	}
}

// Counters implements [handover.Handler].
func (r *Room) Counters() (c handover.Counters, err error) {
	if r.any != nil {
		return r.any.counters()
	}
	for _, f := range r.families {
		n, err := denied(f)
		if err != nil {
			return c, err
		}
		c.Set(f, n)
	}
	return c, nil
}
