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

// Options is what a room is made from.
type Options struct {
	// Name of the room; the guard knows it by the socket's path.
	Name string
	// Open leads every TCP connection to the guard.
	Open bool
	// Dir holds the socket <Name>.sock.
	Dir string
	// GuardUID is the user that the guard runs as.
	GuardUID uint32
	// AnyIP lets the room do without netfilter where the kernel hasn't what it
	// needs of it; see docs/decisions/anyip.md.
	AnyIP bool
	// Packets are packet sockets of [fallback.PacketSockets], which such a room needs.
	Packets []int
	// Log gets lines about guards that come and go; may be nil.
	Log func(string)
}

// Room is a namespace that has been made a room. It keeps copies of all
// sockets, so that a guard that comes again gets the same.
type Room struct {
	o        Options
	families families
	fds      []int
	any      *anyIP // nil: netfilter redirects

	mu    sync.Mutex
	ports []firewall.PortRange // that are redirected beside 53, 80 and 443
}

// New makes a room of the namespace of the process. On an error the namespace
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
		return nil, fmt.Errorf("%q can't be the name of a room", o.Name)
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
	// Rules before routes: there is no moment at which a packet could go
	// somewhere else than the rules say. The policy's ports are refused until the
	// guard tells which they are.
	err = loadRules(firewall.NewRuleset(firewall.RulesetOptions{Open: o.Open}), fs)
	if lack := new(lackError); o.AnyIP && errors.As(err, &lack) {
		return newAnyIP(o, fs, v6Routes, lack)
	}
	if err != nil {
		return nil, err
	}
	closeFDs(o.Packets)
	if err := routes(fs, v6Routes, defaultRoute); err != nil {
		return nil, err
	}
	fds, err := openSockets(fs)
	if err != nil {
		return nil, err
	}
	return &Room{o: o, families: fs, fds: fds}, nil
}

// routes makes the route of each family that has addresses here; without any,
// connections get EADDRNOTAVAIL at once.
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
	s := &handover.Server{Handler: r, UID: r.o.GuardUID, Log: r.o.Log}
	go func() {
		<-stop
		l.Close()
	}()
	ready()
	return s.Serve(l)
}

// Close closes the room's copies of the sockets. Rules and routes stay.
func (r *Room) Close() {
	closeFDs(r.fds)
	r.fds = nil
	if r.any != nil {
		r.any.close()
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
		return -1, fmt.Errorf("port %d is the guard's own", port)
	}
	fd, err := roomSocket(r.families, unix.SOCK_STREAM)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// Redirect implements [handover.Handler].
func (r *Room) Redirect(ports []firewall.PortRange) (handover.Opened, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// 53, 80 and 443 have rules or listeners of their own.
	ports = firewall.SubtractPorts(ports, []firewall.PortRange{{First: 53, Last: 53}, {First: 80, Last: 80}, {First: 443, Last: 443}})
	if len(ports) > firewall.MaxRedirects {
		return handover.Opened{}, errors.New("too many ranges of ports")
	}
	ports = firewall.NormalizePorts(ports)
	if r.any != nil {
		return r.any.open(r.families, ports), nil
	}
	if slices.Equal(ports, r.ports) {
		return handover.Opened{}, nil
	}
	change := replaceNAT
	if len(r.ports) == 0 && !r.o.Open {
		change = appendNAT // what a guard tells first
	}
	if err := change(firewall.RulesetOptions{Ports: ports, Open: r.o.Open}, r.families); err != nil {
		return handover.Opened{}, err
	}
	r.ports = ports
	return handover.Opened{}, nil
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
