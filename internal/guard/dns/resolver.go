package dns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/share"
)

// tries are the timeouts of upstream queries in two rounds over the servers. The
// first is short, so that after a silent server the next is tried before a client
// gives up.
var tries = []time.Duration{700 * time.Millisecond, 2 * time.Second}

// flightTimeout bounds one look-up, whoever waits for it.
const flightTimeout = 8 * time.Second

// Dial connects to a resolver; it is egress.Upstream's.
type Dial func(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error)

// Resolver queries the upstream servers and caches their answers. It has no
// policy: callers must look up allowed names only.
type Resolver struct {
	servers func() []netip.AddrPort
	dial    Dial
	cache   cache
	first   atomic.Uint32 // the server that answered last, queried first
}

// NewResolver returns a resolver. servers is called for each question and returns
// the servers to query, in order.
func NewResolver(servers func() []netip.AddrPort, dial Dial) *Resolver {
	r := &Resolver{servers: servers, dial: dial}
	r.cache.init()
	return r
}

// Answer is the result of a look-up. Without an address the name has none of the
// type, or doesn't exist (Exists is false).
type Answer struct {
	Addrs   []netip.Addr
	Exists  bool
	Expires time.Time
}

// Lookup returns the addresses of a name, of one type, from the cache or from
// upstream. It sends one query at a time for each name, and for each place of
// asking.
func (r *Resolver) Lookup(ctx context.Context, asking *share.Room, name firewall.Name, t Type) (Answer, error) {
	return r.cache.get(ctx, asking, key{name, t}, r.ask)
}

// Cached returns an answer from the cache.
func (r *Resolver) Cached(name firewall.Name, t Type) (Answer, bool) {
	return r.cache.peek(key{name, t})
}

// ask queries the servers in order until one returns a usable answer.
func (r *Resolver) ask(ctx context.Context, k key) (Answer, error) {
	err := errors.New("no resolver is configured")
	first, servers := int(r.first.Load()), r.servers()
	for _, timeout := range tries {
		for i := range servers {
			at := (first + i) % len(servers)
			s := servers[at]
			var res result
			res, err = r.exchange(ctx, s, k, timeout)
			switch {
			case ctx.Err() != nil:
				return Answer{}, ctx.Err()
			case err != nil:
			case res.code == success, res.code == nxDomain:
				r.first.Store(uint32(at))
				return answer(res), nil
			default:
				err = fmt.Errorf("resolver %s answers with code %d", s, res.code)
			}
		}
	}
	return Answer{}, err
}

// Lifetimes in the cache.
const (
	minTTL      = 1 * time.Second
	maxTTL      = time.Hour
	negativeTTL = 10 * time.Second
	failureTTL  = time.Second // RFC 9520 §3.2: at least that
)

func answer(res result) Answer {
	a := Answer{Addrs: res.addrs, Exists: res.code == success}
	ttl := negativeTTL
	if len(a.Addrs) > 0 {
		ttl = max(minTTL, min(maxTTL, time.Duration(res.ttl)*time.Second))
	}
	a.Expires = time.Now().Add(ttl)
	return a
}

func (r *Resolver) exchange(ctx context.Context, server netip.AddrPort, k key, timeout time.Duration) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := r.over(ctx, "udp", server, k)
	if err == nil && res.truncated {
		res, err = r.over(ctx, "tcp", server, k)
		if err == nil && res.truncated {
			err = errors.New("truncated answer over TCP")
		}
	}
	return res, err
}

// over sends one query. Each has its own socket (so port) and id.
func (r *Resolver) over(ctx context.Context, network string, server netip.AddrPort, k key) (result, error) {
	c, err := r.dial(ctx, network, server)
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var idb [2]byte
	_, _ = rand.Read(idb[:]) // never fails, see crypto/rand
	id := binary.BigEndian.Uint16(idb[:])
	q, err := packQuery(id, k.name.String(), k.kind)
	if err != nil {
		return result{}, err
	}
	if network == "tcp" {
		return overTCP(c, q, id, k)
	}
	if _, err := c.Write(q); err != nil {
		return result{}, err
	}
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return result{}, err
		}
		res, err := parseResult(buf[:n], id, k.name.String(), k.kind)
		if err == nil {
			return res, nil
		}
		// A wrong answer may be forged: wait for the right one.
	}
}

func overTCP(c net.Conn, q []byte, id uint16, k key) (result, error) {
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
		return result{}, err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return result{}, err
	}
	buf := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, buf); err != nil {
		return result{}, err
	}
	return parseResult(buf, id, k.name.String(), k.kind)
}
