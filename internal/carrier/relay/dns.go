package relay

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
)

// dns answers queries by UDP, each from the address that it was sent to.
func (r *Relay) dns() error {
	c, err := r.listenDNS(netip.IPv4Unspecified())
	if err != nil {
		return err
	}
	r.all.Go(func() {
		<-r.ctx.Done()
		c.Close()
		r.servers.close()
	})
	r.all.Go(func() { r.queries(c, netip.Addr{}) })
	return nil
}

// listenDNS opens a socket for queries that are sent to an address. Its answers are from there.
func (r *Relay) listenDNS(at netip.Addr) (*net.UDPConn, error) {
	l := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1))
		}); e != nil {
			return e
		}
		return err
	}}
	c, err := l.ListenPacket(r.ctx, "udp4", netip.AddrPortFrom(at, 53).String())
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), nil
}

// queries reads those that come to a socket. With an invalid address it is every one's.
func (r *Relay) queries(c *net.UDPConn, to netip.Addr) {
	query, control := make([]byte, carrier.MaxDNS), make([]byte, 128)
	every := !to.IsValid()
	for {
		n, k, flags, from, err := c.ReadMsgUDPAddrPort(query, control)
		switch {
		case r.ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			return
		case err != nil || flags&unix.MSG_TRUNC != 0 || n == 0:
			continue
		}
		if r.link.Current() == nil { // queries wait in the socket
			return
		}
		if every {
			to = askedAt(control[:k])
		}
		select {
		case r.slots <- struct{}{}:
		default: // it is asked again
			continue
		}
		server := r.servers.of(to, r.answerAt)
		if server == nil {
			<-r.slots
			continue
		}
		text := append([]byte(nil), query[:n]...)
		r.all.Go(func() {
			defer func() { <-r.slots }()
			if answer := r.ask(text, from.Addr()); answer != nil {
				_, _ = server.WriteToUDPAddrPort(answer, from)
			}
		})
	}
}

// answerAt opens the socket of one address.
func (r *Relay) answerAt(at netip.Addr) (*net.UDPConn, error) {
	c, err := r.listenDNS(at)
	if err == nil {
		r.all.Go(func() { r.queries(c, at) })
	}
	return c, err
}

// askedAt returns the address that a received message was sent to; invalid: it isn't known.
func askedAt(control []byte) (to netip.Addr) {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return to
	}
	for _, m := range all {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo {
			// struct in_pktinfo: ipi_ifindex, ipi_spec_dst, ipi_addr (ip(7)).
			to, _ = netip.AddrFromSlice(m.Data[8:12])
		}
	}
	return to
}

// ask sends a query of a program at an address to the room's DNS; nil: no answer.
func (r *Relay) ask(query []byte, from netip.Addr) []byte {
	s := r.link.Open(carrier.Head{Kind: carrier.DNS, Source: carrier.SourceOf(from)}.Encode())
	if s == nil {
		return nil
	}
	defer s.Close()
	late := time.AfterFunc(patience, func() { s.Reset() })
	defer late.Stop()
	if _, err := s.Write(query); err != nil || s.CloseWrite() != nil {
		return nil
	}
	return carrier.ReadDNS(s)
}
