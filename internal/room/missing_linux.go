package room

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// extension is a match or target of xtables that a rule uses.
type extension struct {
	family   firewall.Family
	name     string
	revision uint32
	target   bool
}

// extensionsOf lists the extensions of a rule.
func extensionsOf(f firewall.Family, exprs []expr.Any) (out []extension) {
	for _, x := range exprs {
		switch y := x.(type) {
		case *expr.Match:
			out = append(out, extension{f, y.Name, y.Rev, false})
		case *expr.Target:
			out = append(out, extension{f, y.Name, y.Rev, true})
		}
	}
	return out
}

// module is the kernel module that has the extension.
func (x extension) module() string {
	switch x.name {
	case "tcp", "udp":
		return "xt_tcpudp"
	case "REJECT":
		if x.family == firewall.V6 {
			return "ip6t_REJECT"
		}
		return "ipt_REJECT"
	}
	return "xt_" + x.name
}

// Of linux/netfilter/nf_tables_compat.h and nfnetlink.h.
const (
	nfnlSubsysNFTCompat = 11
	nfnlMsgCompatGet    = 0
	nftaCompatName      = 1
	nftaCompatRev       = 2
	nftaCompatType      = 3
)

// known asks the kernel for an extension, as iptables-nft does. ENOENT says that
// there is none; EINVAL that nobody answers such questions, so that nft_compat
// is missing (nfnetlink_rcv_msg of net/netfilter/nfnetlink.c).
func (x extension) known() error {
	c, err := dialNetlink(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer c.Close()
	typ := uint32(0)
	if x.target {
		typ = 1
	}
	m, err := request(nfnlSubsysNFTCompat<<8|nfnlMsgCompatGet, 0, netfilterHeader(nfproto(x.family), 0), binary.BigEndian, func(e *netlink.AttributeEncoder) {
		e.String(nftaCompatName, x.name)
		e.Uint32(nftaCompatRev, x.revision)
		e.Uint32(nftaCompatType, typ)
	})
	if err == nil {
		_, err = c.Send(m)
	}
	if err != nil {
		return refusal(err)
	}
	return firstAnswer(c)
}

// firstAnswer reads one message and returns its error. The answer to a question
// for an extension says that more follow, and none does (nfnl_compat_fill_info
// of net/netfilter/nft_compat.c), which the library would wait for.
func firstAnswer(c *netlink.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 4096)
	var n int
	if e := raw.Read(func(fd uintptr) bool {
		n, _, err = unix.Recvfrom(int(fd), buf, 0)
		return !errors.Is(err, unix.EAGAIN)
	}); e != nil {
		return e
	}
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 {
		return errors.New("a short netlink message")
	}
	if binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return nil
	}
	if errno := int32(binary.NativeEndian.Uint32(buf[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// lacking says what the kernel misses for a transaction that it refused with
// err, all of it at once; nil when that isn't what is wrong. at is the message
// that was refused, 0 for none.
func (t *transaction) lacking(err error, at int) error {
	var missing []string
	add := func(module string) {
		if !slices.Contains(missing, module) {
			missing = append(missing, module)
		}
	}
	switch {
	case at == 0 && (errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT)):
		// nobody speaks nfnetlink, so nobody knows of extensions either
		return lacks("nfnetlink", "nf_tables", "nft_compat")
	case at == 1 && errors.Is(err, unix.EOPNOTSUPP):
		add("nf_tables") // no such subsystem (nfnetlink_rcv_batch)
	case at > 1 && errors.Is(err, unix.ENOENT) && strings.HasPrefix(t.what[at-1], "chain "):
		add("nft_chain_nat") // the only type of chain that has a module
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
	default:
		return nil
	}
	for _, x := range t.extensions {
		switch err := x.known(); {
		case errors.Is(err, unix.EINVAL):
			add("nft_compat")
		case errors.Is(err, unix.ENOENT):
			add(x.module())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return lacks(missing...)
}

// lacks says which kernel modules are missing, and what to do. There is no
// second way to make a room.
func lacks(modules ...string) error {
	list := strings.Join(modules, ", ")
	if n := len(modules); n > 1 {
		list = strings.Join(modules[:n-1], ", ") + " and " + modules[n-1]
	}
	return fmt.Errorf("the kernel lacks %s, and a room can't be closed without: load it on the machine that runs the containers (sudo modprobe -a %s), or use a kernel that has it; a worker with `network: none` needs no room", list, strings.Join(modules, " "))
}
