package relay

import (
	"net"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
)

// dns answers queries by UDP, each from the address that it was sent to.
func (r *Relay) dns() error {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: 53})
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1) }); e != nil {
			err = e
		}
	}
	if err != nil {
		c.Close()
		return err
	}
	r.all.Go(func() {
		<-r.ctx.Done()
		c.Close()
	})
	r.all.Go(func() { r.queries(c) })
	return nil
}

func (r *Relay) queries(c *net.UDPConn) {
	query, control := make([]byte, carrier.MaxDNS), make([]byte, 128)
	for {
		n, k, flags, from, err := c.ReadMsgUDPAddrPort(query, control)
		switch {
		case r.ctx.Err() != nil:
			return
		case err != nil || flags&unix.MSG_TRUNC != 0 || n == 0:
			continue
		}
		if r.link.Current() == nil { // queries wait in the socket
			return
		}
		select {
		case r.slots <- struct{}{}:
		default: // it is asked again
			continue
		}
		text, source := append([]byte(nil), query[:n]...), sourceOf(control[:k])
		r.all.Go(func() {
			defer func() { <-r.slots }()
			if answer := r.ask(text); answer != nil {
				_, _, _ = c.WriteMsgUDPAddrPort(answer, source, from)
			}
		})
	}
}

// sourceOf returns the control message that sends from the address of a received one.
func sourceOf(control []byte) []byte {
	all, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range all {
		if m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO && len(m.Data) >= unix.SizeofInet4Pktinfo {
			// struct in_pktinfo: ipi_ifindex, ipi_spec_dst, ipi_addr (ip(7)).
			to, _ := netip.AddrFromSlice(m.Data[8:12])
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: to.As4()})
		}
	}
	return nil
}

// ask sends a query to the room's DNS; nil: no answer.
func (r *Relay) ask(query []byte) []byte {
	s := r.link.Open(carrier.Head{Kind: carrier.DNS}.Encode())
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
