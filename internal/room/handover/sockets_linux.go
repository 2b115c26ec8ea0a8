package handover

import "os"

// Sockets are the sockets that a room hands over. All were created in the room's
// network namespace, are non-blocking and, except NFLog and Refused, dual-stack if the
// room has IPv6.
//
// A room of kind [AnyIP] has no TCP, but a listener for each port of the policy, in the
// response to [Client.Redirect]; and it has Refused in place of NFLog.
type Sockets struct {
	Kind Kind

	DNSUDP *os.File // bound to [::]:531, or [::]:53 with the asked address in control messages (IPV6_PKTINFO)
	DNSTCP *os.File // listens on 531, or 53
	HTTP   *os.File // listens on 533: redirected connections to port 80; or on 80
	TLS    *os.File // listens on 534: redirected connections to port 443; or on 443
	Proxy  *os.File // listens on 536: explicit HTTP proxy; with AnyIP, on loopback alone it is that
	TCP    *os.File // listens on 535: redirected connections to the policy's other ports
	NFLog  *os.File // NETLINK_NETFILTER, bound to group 100, threshold 1, with sequence numbers
	// Refused4 and 6 are packet sockets (packet(7)) that receive packets indicating a
	// refusal, from the IP header on; 6 is nil without IPv6.
	Refused4, Refused6 *os.File
}

// Numbers of descriptors that a room of either kind sends.
const (
	numShared  = 5
	numSockets = numShared + 2
)

// files lists the fields in the order in which they are handed over.
func (s *Sockets) files() []**os.File {
	shared := []**os.File{&s.DNSUDP, &s.DNSTCP, &s.HTTP, &s.TLS, &s.Proxy}
	if s.Kind == AnyIP {
		return append(shared, &s.Refused4, &s.Refused6)
	}
	return append(shared, &s.TCP, &s.NFLog)
}

// names returns the names of the files of either kind.
func (s *Sockets) names() []string {
	shared := []string{"dns-udp", "dns-tcp", "http", "tls", "proxy"}
	if s.Kind == AnyIP {
		return append(shared, "refused4", "refused6")
	}
	return append(shared, "tcp", "nflog")
}

// enough reports whether n is a valid number of sockets for the kind: only the last of
// AnyIP may be missing.
func (k Kind) enough(n int) bool { return n == numSockets || k == AnyIP && n == numSockets-1 }

// Listener is one port of the policy in a room of kind [AnyIP].
type Listener struct {
	Port uint16
	File *os.File
}

// Close closes all sockets that aren't nil. The room's duplicates stay open.
func (s *Sockets) Close() {
	for _, f := range s.files() {
		if *f != nil {
			(*f).Close()
			*f = nil
		}
	}
}
