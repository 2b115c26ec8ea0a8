package handover

import "os"

// Sockets are what a room hands over. All were made in the room's network
// namespace, are non-blocking and, but for NFLog, dual-stack where the room has
// IPv6.
type Sockets struct {
	DNSUDP *os.File // bound to [::]:531; SO_ORIGINAL_DST isn't needed, answers go back as asked
	DNSTCP *os.File // listens on 531
	HTTP   *os.File // listens on 533: redirected connections to port 80
	TLS    *os.File // listens on 534: redirected connections to port 443
	TCP    *os.File // listens on 535: redirected connections to the policy's other ports
	Proxy  *os.File // listens on 536: explicit HTTP proxy
	NFLog  *os.File // NETLINK_NETFILTER, bound to group 100, threshold 1, with sequence numbers
}

// numSockets is the number of fields of Sockets.
const numSockets = 7

func (s *Sockets) files() [numSockets]**os.File {
	return [numSockets]**os.File{&s.DNSUDP, &s.DNSTCP, &s.HTTP, &s.TLS, &s.TCP, &s.Proxy, &s.NFLog}
}

var socketNames = [numSockets]string{"dns-udp", "dns-tcp", "http", "tls", "tcp", "proxy", "nflog"}

// Close closes all sockets; those that are nil are skipped. The room's copies
// stay open.
func (s *Sockets) Close() {
	for _, f := range s.files() {
		if *f != nil {
			(*f).Close()
			*f = nil
		}
	}
}
