package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// netlinkTimeout bounds the wait for the kernel's answer, which normally arrives within
// the call that sends the request.
const netlinkTimeout = 10 * time.Second

// dialNetlink opens a socket of a netlink family in the namespace of the
// calling thread.
func dialNetlink(family int) (*netlink.Conn, error) {
	c, err := netlink.Dial(family, nil)
	if err != nil {
		return nil, err
	}
	if err := c.SetDeadline(time.Now().Add(netlinkTimeout)); err != nil {
		c.Close()
		return nil, err
	}
	// The default is small for a long list of ports. If it can't be raised, at worst the
	// transaction fails.
	_ = c.SetWriteBuffer(1 << 20)
	return c, nil
}

// request makes a message of a header in the machine's byte order, a structure
// of x/sys/unix, and attributes, whose numbers are in the order given.
func request(typ, flags uint16, header any, order binary.ByteOrder, attributes func(*netlink.AttributeEncoder)) (m netlink.Message, err error) {
	m.Header.Type, m.Header.Flags = netlink.HeaderType(typ), netlink.Request|netlink.HeaderFlags(flags)
	if m.Data, err = binary.Append(nil, binary.NativeEndian, header); err != nil || attributes == nil {
		return m, err
	}
	e := netlink.NewAttributeEncoder()
	e.ByteOrder = order
	attributes(e)
	b, err := e.Encode()
	m.Data = append(m.Data, b...)
	return m, err
}

// routeRequest sends one message of rtnetlink(7); what describes it in errors.
func routeRequest(what string, typ, flags uint16, header any, attributes func(*netlink.AttributeEncoder)) error {
	c, err := dialNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	defer c.Close()
	m, err := request(typ, flags|unix.NLM_F_ACK, header, binary.NativeEndian, attributes)
	if err == nil {
		_, err = c.Execute(m)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, refusal(err))
	}
	return nil
}

// refusal returns the kernel's own error in err, if any: the library's text around it
// adds nothing.
func refusal(err error) error {
	var op *netlink.OpError
	if errors.As(err, &op) && op.Sequence != 0 {
		return op.Err
	}
	return err
}

// netfilterHeader returns a struct nfgenmsg (linux/netfilter/nfnetlink.h), whose
// resource is in network order.
func netfilterHeader(family uint8, resource uint16) unix.Nfgenmsg {
	return unix.Nfgenmsg{Nfgen_family: family, Version: unix.NFNETLINK_V0, Res_id: binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, resource))}
}
