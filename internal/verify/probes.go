package verify

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/firewall"
)

// Words of refusals.
var (
	noPermission = []string{"EPERM", "EACCES", "ENOSYS"}
	notThere     = []string{"ENOENT", "EACCES", "ENOTDIR"}
	readOnly     = []string{"EROFS", "EACCES", "EPERM"}
	unreachable  = []string{"ENETUNREACH", "ECONNREFUSED", "EADDRNOTAVAIL", "EAFNOSUPPORT", "EHOSTUNREACH", "EACCES", "EPERM"}
	// cut is how the guard or the room ends a connection.
	cut = []string{"ECONNREFUSED", "ECONNRESET", "EPIPE", "EOF", "TLSALERT", "EACCES", "EPERM"}
	// cut6 is cut where a room may have no IPv6.
	cut6 = append([]string{"403", "EADDRNOTAVAIL", "EAFNOSUPPORT", "ENETUNREACH"}, cut...)
)

// systemCalls are refused by the profile.
var systemCalls = []string{
	"add_key", "keyctl", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "setns", "unshare", "mount", "umount2",
	"pivot_root", "open_by_handle_at", "init_module", "kexec_load", "reboot", "clone3",
}

// families are sockets that the profile refuses.
var families = map[string]string{"AF_VSOCK": "SOCK_STREAM", "AF_ALG": "SOCK_SEQPACKET", "AF_PACKET": "SOCK_RAW"}

// Probes are the tries in a worker, in their order.
func Probes(w *Worker) []Probe {
	b := &batch{}
	b.container(w)
	b.files(w)
	if w.Net == nil {
		b.without()
	} else {
		b.network(w.Net)
	}
	return b.all
}

type batch struct {
	all  []Probe
	from netip.AddrPort // source of connections; invalid: any
}

func (b *batch) add(key, format string, args ...any) {
	t := fmt.Sprintf(format, args...) + " name=" + strconv.Quote(key)
	if !strings.Contains(format, " limit=") {
		t += " limit=1500ms" // a refusal takes less than a millisecond
	}
	if strings.Contains(t, "->") {
		return // a path with what separates a probe from what it expects: it isn't tried
	}
	if b.from.IsValid() {
		t += " from=" + b.from.String()
	}
	b.all = append(b.all, Probe{key, t})
}

func (b *batch) container(w *Worker) {
	for _, set := range []string{"CapEff", "CapBnd", "CapAmb"} {
		b.add("cap."+set, "status %s", set)
	}
	b.add("cap.raw socket", "socket AF_INET SOCK_RAW IPPROTO_ICMP")
	b.add("cap.device node", "mknod /tmp/%s", tryName)
	b.add("control.socket", "socket AF_INET SOCK_DGRAM")
	b.add("priv.NoNewPrivs", "status NoNewPrivs")
	b.add("priv.Seccomp", "status Seccomp")
	for _, call := range systemCalls {
		b.add("call."+call, "syscall %s", call)
	}
	for _, family := range sortedKeys(families) {
		b.add("socket."+family, "socket %s %s", family, families[family])
	}
	b.add("call.user namespace", "namespace user")
	b.add("control.getpid", "syscall getpid")
	b.add("uid", "uid")
	b.add("pid1.Name", "status Name 1")
	b.add("pid1.PPid", "status PPid 1")
	b.add("host./proc/1/fd", "list /proc/1/fd")
	b.add("host./proc/1/environ", "read /proc/1/environ")
	b.add("control./proc/self/fd", "list /proc/self/fd")
	for _, kind := range kinds {
		b.add("ns."+kind, "readlink /proc/self/ns/%s", kind)
	}
	for _, socket := range engineSockets {
		b.add("host."+socket, "read %s", socket)
	}
	if w.OwnKernel {
		b.add("host./proc/1/exe", "readlink /proc/1/exe") // its /proc/1/fd can be listed, and not followed
		b.add("kernel.boot", "read /proc/sys/kernel/random/boot_id")
		b.add("kernel.version", "read /proc/version")
	}
	b.add("init.workshop-init", "read /opt/workshop/workshop-init bytes=4")
	b.add("init.door", "write /run/workshop/%s", tryName)
	b.add("environ", "environ")
}

// engineSockets are where engines listen.
var engineSockets = []string{"/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock"}

// tryName is a file that a try would make, and remove.
const tryName = ".workshop-verify"

func (b *batch) files(w *Worker) {
	for _, dir := range []string{"/", "/etc/", "/usr/", "/opt/workshop/", "/proc/sys/kernel/"} {
		b.add("write."+dir+tryName, "write %s", dir+tryName)
	}
	b.add("control.write", "write /tmp/%s", tryName)
	b.add("writable", "writable")
	for _, m := range w.Mounts {
		b.add("mount."+m.Target, "mount %q", m.Target)
		if m.Excluded != "" {
			b.add("excluded."+m.Target, "stat %q", m.Target+"/"+m.Excluded)
			b.add("kept."+m.Target, "stat %q", m.Target+"/"+m.Kept)
		}
	}
	for _, p := range w.Protected {
		if w.VM { // its guest has one mount for it and what is around it
			b.add("protected."+p.Target, "write %q", p.Target+"/"+tryName)
		} else {
			b.add("protected."+p.Target, "mount %q", p.Target)
		}
	}
	b.add("secrets", "list /run/secrets")
	for _, s := range w.Secrets {
		b.add("secret."+s, "stat %q", "/run/secrets/"+s)
	}
}

// without are the tries of a worker without a network.
func (b *batch) without() {
	b.add("net.interfaces", "interfaces")
	b.add("control.loop", "loop 127.0.0.1:0")
	b.add("none.198.51.100.1:443", "connect 198.51.100.1:443")
	b.add("none.198.51.100.1:9", "connect 198.51.100.1:9")
	b.add("none.169.254.169.254:80", "connect 169.254.169.254:80")
	b.add("dns.look-up", "dns 198.51.100.1 verify.example.org A")
	b.add("dns.by the system", "lookup verify.example.org")
	b.room()
}

// room are the tries to change the room. None changes anything, should it succeed.
func (b *batch) room() {
	b.add("room.route", "route del 198.51.100.0/24")
	b.add("room.address", "address del 198.51.100.66/32")
	b.add("room.rules", "rules del")
	b.add("room.xtables", "xtables")
	b.add("room.mark", "sockopt mark")
	b.add("room.transparent", "sockopt transparent")
	b.add("control.bind", "bind tcp 127.0.0.1:0")
}

func (b *batch) network(n *Net) {
	b.add("net.interfaces", "interfaces")
	b.add("control.loop", "loop 127.0.0.1:0")
	b.room()
	for _, port := range []int{53, 531, 533, 534, 535, 536, 1023} {
		b.add("room.port "+strconv.Itoa(port), "bind tcp 127.0.0.1:%d", port)
	}
	b.from = n.Tries.From
	defer func() { b.from = netip.AddrPort{} }()
	t := &n.Tries
	b.add("control.dns", "dns 127.0.0.1 ready.workshop.internal A")
	b.add("dns."+t.Special, "dns 127.0.0.1 %s A", t.Special)
	if t.Name != "" {
		b.add("dns."+t.Name, "dns 127.0.0.1 %s A", t.Name)
		b.add("tls.https://"+t.Name, "tls %s:443 connect=%s", t.Name, netip.AddrPortFrom(t.Address, 443))
		b.add("http.http://"+t.Name, "http http://%s/ connect=%s", t.Name, netip.AddrPortFrom(t.Address, 80))
		b.add("http.through the proxy", "tunnel 127.0.0.1:536 %s:443", t.Name)
	}
	if t.Port != 0 {
		at := netip.AddrPortFrom(t.Address, t.Port)
		b.add("port."+at.String(), "%s %s", t.connect(), at)
		b.add("udp."+at.String(), "udp %s", at)
	}
	if t.Untold != 0 {
		at := netip.AddrPortFrom(t.Address, t.Untold)
		b.add("untold."+at.String(), "connect %s", at)
	}
	if t.Named != 0 {
		at := netip.AddrPortFrom(t.Address, t.Named)
		b.add("named."+at.String(), "tcp %s", at)
	}
	b.add("never.http://169.254.169.254", "http http://169.254.169.254/")
	b.add("never.https://169.254.169.254", "tls 169.254.169.254:443")
	b.add("never."+t.metadata(), "tcp %s", t.metadata())
	b.add("never.http://[fd00:ec2::254]", "http http://[fd00:ec2::254]/")
	if t.Private.IsValid() {
		at := netip.AddrPortFrom(t.Private, t.Never)
		b.add("never."+at.String(), "tcp %s", at)
	}
	if n.Canary.Address != "" {
		b.add("never.this machine", "tcp %s", n.Canary.Address)
	}
	b.endpoints(t)
	for _, host := range t.Live {
		name, port, _ := strings.Cut(host, ":")
		if port == "443" {
			b.add("live."+host, "tls %s limit=5s", host)
			b.add("spoof."+host, "tls %s connect=%s limit=5s", host, netip.AddrPortFrom(t.Address, 443))
		} else {
			b.add("live."+host, "http http://%s/ method=HEAD limit=5s", name)
			b.add("spoof."+host, "http http://%s/ method=HEAD connect=%s limit=5s", name, netip.AddrPortFrom(t.Address, 80))
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// NewID makes the names that one run tries its own.
func NewID() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return "v" + hex.EncodeToString(b[:])
}

var triedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v[0-9a-f]{12}-[a-z0-9]*\.(example\.(com|net|org)|workshop-verify\.invalid)$`)
})

// IsTry reports whether a name is of the form that [ChooseTries] makes with [NewID] and a
// worker's short name: nobody needs such a name.
func IsTry(name string) bool { return triedName().MatchString(name) }

// ChooseTries picks destinations that a room's policy denies. id makes the names of
// one run of one worker its own.
func ChooseTries(p *firewall.RoomPolicy, id string, number uint16, from netip.AddrPort) Tries {
	m := p.Compile()
	t := Tries{From: from, Special: id + ".workshop-verify.invalid", Never: 9000}
	for _, base := range []string{"example.com", "example.net", "example.org"} {
		n, err := firewall.ParseName(id + "." + base)
		if err == nil && !m.Resolvable(n).Allowed && !m.Name(n, 443).Allowed && !m.Name(n, 80).Allowed {
			t.Name = n.String()
			break
		}
	}
	t.Address = netip.AddrFrom4([4]byte{198, 51, 100, byte(1 + number%250)})
	ports := firewall.RoomPorts(*p)
	for try := range uint16(200) {
		port := 20000 + (number+try*131)%20000
		if !firewall.HasPort(ports, port) && !m.Addr(t.Address, port).Allowed {
			t.Port = port
			break
		}
	}
	for _, r := range ports {
		if port := r.First; port != 80 && port != 443 && port != 53 && !m.Addr(t.Address, port).Allowed {
			t.Named = port
			break
		}
	}
	for _, text := range []string{"10.255.255.1", "172.31.255.1", "192.168.255.1"} {
		if a := netip.MustParseAddr(text); !m.Addr(a, 9000).Allowed {
			t.Private = a
			break
		}
	}
	t.Endpoints = chooseEndpoints(p, m, id)
	return t
}

// metadata is a port of the metadata service.
func (t *Tries) metadata() string { return netip.AddrPortFrom(metadata, t.Never).String() }

// connect is the probe of a connection that is refused: a relay accepts it before it knows.
func (t *Tries) connect() string {
	if t.Carried {
		return "tcp"
	}
	return "connect"
}

// Carry chooses ports anew for a worker whose connections are carried to its room: those that
// its relay accepts at, of which the guard is told.
func (t *Tries) Carry(p *firewall.RoomPolicy) {
	m, named := p.Compile(), firewall.RoomPorts(*p)
	t.Carried = true
	t.Untold, t.Port, t.Never = t.Port, 0, firewall.ToldPorts[0]
	for _, port := range firewall.ToldPorts {
		if !firewall.HasPort(named, port) && !m.Addr(t.Address, port).Allowed {
			t.Port, t.Never = port, port
			break
		}
	}
	if t.Private.IsValid() && m.Addr(t.Private, t.Never).Allowed {
		t.Private = netip.Addr{}
	}
}

// LiveHosts are allowed names that --live dials: at most three with port 443, else 80.
func LiveHosts(p *firewall.RoomPolicy) (out []string) {
	m := p.Compile()
	for _, r := range p.Allow {
		n, exact := r.Host.Name()
		if !exact || len(out) == 3 {
			continue
		}
		for _, port := range []uint16{443, 80} {
			if firewall.HasPort(r.Ports, port) && m.Name(n, port).Allowed {
				out = append(out, n.String()+":"+strconv.Itoa(int(port)))
				break
			}
		}
	}
	return out
}
