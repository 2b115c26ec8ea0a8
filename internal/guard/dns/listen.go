package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/panics"
)

// Bounds of one room's DNS.
const (
	maxQuery = 4096 // bytes of a client's message
	tcpIdle  = 10 * time.Second
)

// ServeUDP serves a socket until it is closed. Answers that need no upstream are
// sent from the reading goroutine.
func (s *Server) ServeUDP(ctx context.Context, pc *net.UDPConn) {
	buf, oob := make([]byte, maxQuery), make([]byte, oobSize)
	for {
		n, oobn, _, from, err := pc.ReadMsgUDPAddrPort(buf, oob)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			// An error of an earlier answer (ICMP); a permanent one must not spin.
			time.Sleep(time.Millisecond)
			continue
		}
		asked := askedAt(oob[:oobn])
		s := s.of(from)
		var out []byte
		ok := true // after a panic there is nothing left to do
		panics.Serve(func() { out, ok = s.Serve(ctx, buf[:n], false, true) }, s.panicked)
		if ok {
			send(pc, out, asked, from)
			continue
		}
		place, ok := s.Waiting.Try()
		if !ok {
			if q, _, err := parseQuery(buf[:n]); err == nil {
				send(pc, packReply(q, reply{code: servFail}, q.udpSize), asked, from)
			}
			continue
		}
		msg := append([]byte(nil), buf[:n]...)
		panics.Go(func() {
			defer place.Free()
			out, _ := s.Serve(ctx, msg, false, false)
			send(pc, out, asked, from)
		}, s.panicked)
	}
}

func (s *Server) panicked() { s.Report(events.Panicked(events.DNS)) }

func send(pc *net.UDPConn, out, asked []byte, to netip.AddrPort) {
	if out != nil {
		_, _, _ = pc.WriteMsgUDPAddrPort(out, asked, to)
	}
}

// ServeConn answers the questions of one TCP connection in order (RFC 7766).
func (s *Server) ServeConn(ctx context.Context, c net.Conn) {
	var size [2]byte
	buf := make([]byte, 0, 512)
	for {
		_ = c.SetDeadline(time.Now().Add(tcpIdle))
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(size[:]))
		if n > maxQuery {
			s.odd(events.ReasonMalformed)
			return
		}
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			return
		}
		out, _ := s.Serve(ctx, buf[:n], true, false)
		if out == nil {
			return
		}
		_ = c.SetDeadline(time.Now().Add(tcpIdle))
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...)); err != nil {
			return
		}
	}
}
