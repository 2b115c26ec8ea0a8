// Package events has the guard's log: one JSON line per denial and per allowed
// connection, with equal ones merged and exact counts (B28).
//
// No field of an event contains a path, a query, a header or a credential.
package events

import (
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Event is the content of one line. Two events are equal if all fields but the byte
// counts are. Fields that don't apply are empty.
type Event struct {
	Room     string // "" for the guard itself
	Kind     Kind
	Name     string // as requested, if by name
	Address  string // dialled by the worker, refused, or dialled by the guard
	Port     uint16
	Protocol string // tcp, udp, icmp, …
	Verdict  Verdict
	Reason   string // a firewall.Reason… or the guard's own
	Rule     string // position of the deciding line: "workshop.yaml:12"
	Suggest  string // the line that would allow it
	Why      string // what Reason doesn't say of a note, for people
	// Explained: `firewall explain` or `verify` tried it from the worker.
	Explained bool
	// BytesUp and BytesDown of End events are added up.
	BytesUp, BytesDown uint64
}

// Kind is where the guard saw it.
type Kind string

// The kinds.
const (
	DNS      Kind = "dns"
	TLS      Kind = "tls"
	HTTP     Kind = "http"
	TCP      Kind = "tcp"
	Proxy    Kind = "proxy"    // the explicit proxy
	Endpoint Kind = "endpoint" // an endpoint of a line
	Inbound  Kind = "inbound"  // a published port
	Kernel   Kind = "kernel"   // refused by the room's rules, seen by NFLOG
	Guard    Kind = "guard"    // about the guard itself
)

// Kinds are all kinds.
var Kinds = []Kind{DNS, TLS, HTTP, TCP, Proxy, Endpoint, Inbound, Kernel, Guard}

// Verdict is the outcome.
type Verdict string

// The verdicts.
const (
	Deny  Verdict = "deny"
	Allow Verdict = "allow" // a connection was allowed and dialled
	End   Verdict = "end"   // such a connection ended, with what it carried
	Note  Verdict = "note"  // something worth knowing
)

// Verdicts are all verdicts.
var Verdicts = []Verdict{Deny, Allow, End, Note}

// Reasons that the guard adds to those of package firewall.
const (
	ReasonNoSNI       = "no-sni"          // TLS without a server name
	ReasonECH         = "ech"             // encrypted ClientHello: the name can't be checked
	ReasonNotTLS      = "not-tls"         // something else on 443
	ReasonMalformed   = "malformed"       // not a valid ClientHello, request or question
	ReasonAmbiguous   = "ambiguous"       // a request to an endpoint that two programs could read in two ways, or that names a host or a credential of its own
	ReasonCredential  = "credential"      // the credential of an endpoint's line isn't there now
	ReasonApproval    = "not-approved"    // a person is asked about such a push, and didn't say yes
	ReasonLastHop     = "last-hop"        // Max-Forwards is 0: the request ends at the guard
	ReasonHostHeader  = "host-header"     // a request's URL and its Host header name different hosts
	ReasonBusy        = "busy"            // too many large heads at the same time
	ReasonMismatch    = "mismatch"        // the worker dialled another address than the name has
	ReasonOtherName   = "other-name"      // the SNI or Host in a CONNECT tunnel is another name
	ReasonOwn         = "own-address"     // an address of the guard itself
	ReasonUpstream    = "upstream"        // a resolver or the upstream proxy
	ReasonGateway     = "gateway"         // the host
	ReasonOnLink      = "on-link"         // another container, or the host's network
	ReasonOverflow    = "overflow"        // too many different events: only counted
	ReasonKernelLost  = "lost"            // denials that the kernel counted but couldn't report
	ReasonUnsupported = "unsupported"     // a protocol that isn't carried, a question that isn't for addresses of the Internet
	ReasonLocalUnsure = "unknown-host"    // the guard can't read its own addresses
	ReasonPublished   = "published"       // allowed because the port is published
	ReasonUpload      = "upload-budget"   // the rule's budget of bytes is used up
	ReasonWildcard    = "wildcard-budget" // too many or too long new names under a wildcard
	ReasonUnresolved  = "unresolved"      // of a note: an allowed name has no address, or no resolver answered
	ReasonUnreachable = "unreachable"     // of a note: allowed, but no address accepted the connection
	ReasonProxy       = "upstream-proxy"  // of a note: allowed, but the upstream proxy failed
	ReasonCertificate = "certificate"     // of a note: allowed, but the certificate of an endpoint's host isn't valid
	ReasonPolicy      = "policy"          // of a note: the policy was replaced
	ReasonLive        = "live-change"     // of a note: a live change began or ended
	ReasonLearning    = "learning"        // of a note: learning began or ended in rooms
	ReasonKept        = "kept"            // of a note: live denies and spent budgets of the previous guard can't be read, or can't be recorded
	ReasonPanic       = "internal-error"  // of a note: serving it panicked; only it has ended
	ReasonTaken       = "port-taken"      // of a note: a worker's program has a port of the policy (a room without nf_tables)
)

// Failed reports whether a program saw a failure: it was denied, or what is allowed
// can't be reached.
func (e Event) Failed() bool {
	if e.Verdict != Note {
		return e.Verdict == Deny
	}
	return e.Reason == ReasonUnresolved || e.Reason == ReasonUnreachable || e.Reason == ReasonCertificate || e.Reason == ReasonProxy
}

// Denied returns the event of a decision.
func Denied(kind Kind, d firewall.Decision) Event {
	e := Event{Kind: kind, Verdict: Deny, Reason: d.Reason, Suggest: d.Suggest}
	if d.Rule != nil {
		e.Rule = d.Rule.Line
	}
	return e
}

// Explained returns a report function that marks events as tried by the host.
func Explained(report func(Event)) func(Event) {
	return func(e Event) {
		e.Explained = true
		report(e)
	}
}

// Panicked returns the event of a panic while serving something.
func Panicked(kind Kind) Event { return Event{Kind: kind, Verdict: Note, Reason: ReasonPanic} }

// Line is the JSON form of one event in the guard's log:
// schemas/event.schema.json.
type Line struct {
	// Time of the event; of merged events, the time of the last one.
	Time     time.Time `json:"time"`
	Room     string    `json:"room,omitempty"`
	Workers  []string  `json:"workers,omitempty"`
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name,omitempty"`
	Address  string    `json:"address,omitempty"`
	Port     uint16    `json:"port,omitempty"`
	Protocol string    `json:"protocol,omitempty"`
	Verdict  Verdict   `json:"verdict"`
	Reason   string    `json:"reason"`
	Rule     string    `json:"rule,omitempty"`
	Suggest  string    `json:"suggest,omitempty"`
	Why      string    `json:"why,omitempty"` // of a denial or a failed upstream proxy: a sentence for people
	// Explained: `firewall explain` or `verify` tried it from the worker.
	Explained bool `json:"explained,omitempty"`
	// BytesUp and BytesDown are the TCP payload of the ended connections: up is
	// from the worker.
	BytesUp   uint64 `json:"bytes_up,omitempty"`
	BytesDown uint64 `json:"bytes_down,omitempty"`
	// Count is how many equal events were merged into the line.
	Count uint64 `json:"count"`
}
