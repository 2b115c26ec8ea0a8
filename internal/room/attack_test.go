//go:build linux

package room

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// attack is what a worker's process does: "dial tcp4 198.51.100.7 22" and so
// on. It prints what happened in one word, an errno's name if it was one.
func attack(role string) int {
	words := strings.Fields(role)
	actions := map[string]func([]string) error{
		"dial":  attackDial,
		"bind":  attackBind,
		"route": func([]string) error { return moveRoute("127.0.0.9") },
		"rules": func([]string) error { return flushRules() },
		"raw": func([]string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP)
			unix.Close(fd)
			return err
		},
		"ping": func(w []string) error { return ping(w[0]) },
		"loup": func([]string) error { return setLoopbackUp() },
		"nflog": func([]string) error {
			fd, err := nflogSocket(101)
			unix.Close(fd)
			return err
		},
		"connect": func(w []string) error {
			c, err := net.Dial("unixpacket", w[0])
			if err == nil {
				c.Close()
			}
			return err
		},
	}
	start := time.Now()
	err := actions[words[0]](words[1:])
	fmt.Printf("%s %d\n", word(err), time.Since(start).Milliseconds())
	return 0
}

// word is the errno's name, "timeout", "ok" or the error.
func word(err error) string {
	var no syscall.Errno
	var t net.Error
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &no):
		return unix.ErrnoName(no)
	case errors.As(err, &t) && t.Timeout():
		return "timeout"
	}
	return strings.ReplaceAll(err.Error(), " ", "_")
}

// patience is how long an attack waits for anything to happen; what is refused
// at once takes less than the half of it.
const patience = time.Second

// attackDial connects, and for UDP sends and waits for an answer or refusal.
func attackDial(w []string) error {
	c, err := net.DialTimeout(w[0], net.JoinHostPort(w[1], w[2]), patience)
	if err != nil {
		return err
	}
	defer c.Close()
	if !strings.HasPrefix(w[0], "udp") {
		return nil
	}
	if _, err := c.Write([]byte("x")); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(patience))
	_, err = c.Read(make([]byte, 100))
	return err
}

func attackBind(w []string) error {
	port, _ := strconv.Atoi(w[2])
	typ := unix.SOCK_STREAM
	if strings.HasPrefix(w[0], "udp") {
		typ = unix.SOCK_DGRAM
	}
	fd, err := bind(typ, w[1], port, true)
	unix.Close(fd)
	return err
}

// bind binds as a program does that wants an address at all costs.
func bind(typ int, addr string, port int, share bool) (int, error) {
	ip := netip.MustParseAddr(addr)
	family, sa := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Port: port, Addr: ip.As16()})
	if ip.Is4() {
		family, sa = unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: ip.As4()}
	}
	fd, err := unix.Socket(family, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if share {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	}
	if family == unix.AF_INET6 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	}
	return fd, unix.Bind(fd, sa)
}

// moveRoute gives the default route another source.
func moveRoute(src string) error {
	return routeRequest("route", unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE,
		unix.RtMsg{Family: unix.AF_INET, Table: unix.RT_TABLE_MAIN, Protocol: unix.RTPROT_STATIC, Scope: unix.RT_SCOPE_LINK, Type: unix.RTN_UNICAST},
		func(e *netlink.AttributeEncoder) {
			e.Uint32(unix.RTA_OIF, loopbackIndex)
			e.Bytes(unix.RTA_PREFSRC, net.ParseIP(src).To4())
		})
}

// flushRules deletes the tables of both families.
func flushRules() error {
	t := newTransaction()
	for _, f := range []firewall.Family{firewall.V4, firewall.V6} {
		for _, table := range []string{"filter", "nat"} {
			t.message(f, "delete "+table, unix.NFT_MSG_DELTABLE, 0, func(e *netlink.AttributeEncoder) { e.String(unix.NFTA_TABLE_NAME, table) })
		}
	}
	return t.commit()
}

// ping sends an echo request by a socket of type IPPROTO_ICMP, which needs no
// capability where ping_group_range allows it.
func ping(addr string) error {
	ip := net.ParseIP(addr)
	family, proto, typ := unix.AF_INET, unix.IPPROTO_ICMP, byte(8)
	if ip.To4() == nil {
		family, proto, typ = unix.AF_INET6, unix.IPPROTO_ICMPV6, 128
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var sa unix.Sockaddr
	// As ping(8) does, to be told of ICMP errors.
	if family == unix.AF_INET {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
		sa = &unix.SockaddrInet4{Addr: [4]byte(ip.To4())}
	} else {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
		sa = &unix.SockaddrInet6{Addr: [16]byte(ip.To16())}
	}
	if err := unix.Sendto(fd, []byte{typ, 0, 0, 0, 0, 0, 0, 1}, 0, sa); err != nil {
		return err
	}
	tv := unix.NsecToTimeval(int64(patience))
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	_, _, err = unix.Recvfrom(fd, make([]byte, 100), 0)
	return err
}

// worker runs an attack as a process of a worker: uid 1000 or uid 0, without
// capabilities, no_new_privs.
func (r *testRoom) worker(uid int, role string) (seen string, took time.Duration) {
	r.t.Helper()
	return r.process(uid, nil, role)
}

func (r *testRoom) process(uid int, prepare func(*syscall.SysProcAttr), role string) (string, time.Duration) {
	r.t.Helper()
	var out []byte
	var err error
	r.inside(func() {
		cmd := self(r.t, role)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		if uid == 0 {
			// Without capabilities: drop what exec would give to uid 0.
			dropBounding()
		}
		if prepare != nil {
			prepare(cmd.SysProcAttr)
		}
		cmd.Stderr = os.Stderr
		out, err = cmd.Output()
	})
	if err != nil {
		r.t.Fatalf("%s: %v", role, err)
	}
	var seen string
	var ms int
	if _, err := fmt.Sscan(string(out), &seen, &ms); err != nil {
		r.t.Fatalf("%s: %q", role, out)
	}
	return seen, time.Duration(ms) * time.Millisecond
}

// dropBounding takes all capabilities out of the bounding set of the thread.
func dropBounding() {
	for c := range unix.CAP_LAST_CAP + 1 {
		unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
	}
}

// expect runs an attack and compares; a refusal has to come at once.
func (r *testRoom) expect(uid int, role, want string) {
	r.t.Helper()
	seen, took := r.worker(uid, role)
	if seen != want {
		r.t.Errorf("uid %d: %s: saw %s, want %s", uid, role, seen, want)
	}
	if took > patience/2 {
		r.t.Errorf("uid %d: %s: took %v", uid, role, took)
	}
}
