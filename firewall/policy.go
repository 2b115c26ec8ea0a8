package firewall

import (
	"net/netip"

	"github.com/llmdo/workshop/diag"
)

// Mode is how far a room reaches. The modes are ordered:
// none < restricted < open. The zero value is [None].
type Mode int

// The modes, see the network section of workshop.yaml.
const (
	None       Mode = iota // loopback only, no room service
	Restricted             // by the allow list
	Open                   // any public name and address over TCP, through the guard
)

// Policy is what one guard enforces for all rooms of a workshop: the content
// of guard/policy.json. Encode and decode it with [EncodePolicy] and
// [ParsePolicy] only: they keep the format, its version and its limits.
type Policy struct {
	// Version of the format; [PolicyVersion].
	Version int `json:"version"`
	// Workshop is the workshop's name, for events.
	Workshop string `json:"workshop"`
	// Resolvers are the upstream DNS servers, as addresses with optional port
	// (53 if absent). Empty: those of the guard's own /etc/resolv.conf.
	// May hold a template, see [Expand].
	Resolvers []string `json:"resolvers,omitempty"`
	// Proxy is the URL of an upstream HTTP proxy; empty: dial directly.
	// May hold a template, see [Expand].
	Proxy string `json:"proxy,omitempty"`
	// ProxyCredential is the name of the user's credential that the guard sends to the proxy,
	// as [ValidEndpointName] has it; empty: none. The value is never part of a policy.
	ProxyCredential string `json:"proxy_credential,omitempty"`
	// Roots are the certificates, in DER, that those of endpoints' hosts are verified by:
	// what the host trusts. Empty: endpoints are closed.
	Roots [][]byte `json:"roots,omitempty"`
	// Rooms by name, sorted by name when encoded.
	Rooms []RoomPolicy `json:"rooms"`
	// Publish lists the inbound ports.
	Publish []Publish `json:"publish,omitempty"`
}

// PolicyVersion is the version of the format that this program writes and the
// only one that it reads.
const PolicyVersion = 1

// RoomPolicy is what one room may reach.
type RoomPolicy struct {
	Room    string   `json:"room"`
	Mode    Mode     `json:"mode"`
	Workers []string `json:"workers"`
	Allow   []Rule   `json:"allow,omitempty"`
	// Deny wins over every Allow, whatever its length.
	Deny []Rule `json:"deny,omitempty"`
	// Learn allows every name that no line denies and that isn't on the
	// never-list, so that it can be recorded. It is live only, never in a file.
	Learn bool `json:"-"`
}

// Rule is one line of allow or deny. Exactly one of Host, CIDR and Template is
// set.
type Rule struct {
	// Host is the pattern of names; its zero value means a CIDR rule.
	Host HostPattern `json:"host,omitzero"`
	// CIDR is a range of addresses that is reached by address.
	CIDR netip.Prefix `json:"cidr,omitzero"`
	// Template is a host or range with a variable in workshop.yaml:
	// "${DB_HOST:?}". The guard expands it, see [Expand]; until then the rule
	// allows nothing and denies nothing.
	Template string `json:"template,omitempty"`
	// Value is the template's value when the workshop was loaded. It is not part
	// of the policy file (B45): engines pass it to the guard in its environment.
	Value string `json:"-"`
	// Ports are TCP ports, sorted and joined. An allow line without a port
	// means 80 and 443, a deny line without a port means all (then Ports is
	// 1-65535).
	Ports []PortRange `json:"ports"`
	// Private opens private ranges to the names of this rule. Metadata,
	// loopback and link-local addresses stay closed.
	Private bool `json:"private,omitempty"`
	// ECH allows a ClientHello with an encrypted part by its outer name (`ech:
	// allow`): the inner name can't be checked.
	ECH bool `json:"ech,omitempty"`
	// Upload bounds the bytes of TCP payload that the workers of one room together
	// send under this rule; zero: no bound.
	Upload Budget `json:"upload,omitzero"`
	// AnyTenant accepts a wildcard on a suffix where anyone can register.
	AnyTenant bool `json:"any_tenant,omitempty"`
	// Endpoint is how alone the host is reached; its zero value is none.
	Endpoint Endpoint `json:"endpoint,omitzero"`
	// Preset is the name of the preset that this rule comes from.
	Preset string `json:"preset,omitempty"`
	// Line is the position of the rule, "workshop.yaml:12", as shown by explain,
	// events and denials.
	Line string `json:"line,omitempty"`
	// Source is the same for diagnostics; it is not part of the policy file.
	Source diag.Source `json:"-"`
}

// PortRange is an inclusive range of TCP ports, 1 to 65535. In JSON a string:
// "22" or "8000-8010".
type PortRange struct{ First, Last uint16 }

// Publish is one inbound port: the guard listens on Listen on its own network
// and dials Target on the loopback of Room.
type Publish struct {
	Room   string `json:"room"`
	Listen uint16 `json:"listen"` // assigned by the compile: 20000 + index
	Target uint16 `json:"target"`
	Worker string `json:"worker"`
}

// The ports inside a room. All are below 1024 and the room's
// ip_unprivileged_port_start is 1024, so that no worker can take them.
const (
	PortDNS      = 531 // udp and tcp: the guard's DNS
	PortHTTP     = 533 // redirected tcp 80
	PortTLS      = 534 // redirected tcp 443
	PortTCP      = 535 // redirected other tcp ports of the policy
	PortProxy    = 536 // explicit HTTP proxy on 127.0.0.1
	NFLogGroup   = 100 // NFLOG group of denials
	FirstPublish = 20000
)

// ReadyName is answered by the guard's DNS once it serves the room; a worker's PID 1
// waits for it. It is never sent upstream.
const ReadyName = "ready.workshop.internal"
