// Package events is what the guard reports: one JSON line per denial and per
// connection that it let through, equal ones joined, with exact counts (B28).
//
// No field of an event has a path, a query, a header or a credential.
package events

import (
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Event is what one line says. Two events are equal when all fields but the
// bytes are. Fields that don't apply are empty.
type Event struct {
	Room     string // "" for the guard itself
	Kind     Kind
	Name     string // as asked for, if it is one
	Address  string // that the worker dialled, that was refused, or that the guard dialled
	Port     uint16
	Protocol string // tcp, udp, icmp, …
	Verdict  Verdict
	Reason   string // a firewall.Reason… or the guard's own
	Rule     string // the line that decided: "workshop.yaml:12"
	Suggest  string // the line that would allow it
	// BytesUp and BytesDown of an End are added up.
	BytesUp, BytesDown uint64
}

// Kind is where the guard saw it.
type Kind string

// The kinds.
const (
	DNS     Kind = "dns"
	TLS     Kind = "tls"
	HTTP    Kind = "http"
	TCP     Kind = "tcp"
	Proxy   Kind = "proxy"   // the explicit proxy
	Inbound Kind = "inbound" // a published port
	Kernel  Kind = "kernel"  // refused by the room's rules, seen by NFLOG
	Guard   Kind = "guard"   // about the guard itself
)

// Kinds are all kinds.
var Kinds = []Kind{DNS, TLS, HTTP, TCP, Proxy, Inbound, Kernel, Guard}

// Verdict is what became of it.
type Verdict string

// The verdicts.
const (
	Deny  Verdict = "deny"
	Allow Verdict = "allow" // a connection was let through and dialled
	End   Verdict = "end"   // such a connection ended: what it carried
	Note  Verdict = "note"  // something worth knowing
)

// Verdicts are all verdicts.
var Verdicts = []Verdict{Deny, Allow, End, Note}

// Reasons that the guard adds to those of package firewall.
const (
	ReasonNoSNI       = "no-sni"          // TLS without a server name
	ReasonECH         = "ech"             // encrypted ClientHello: the name can't be checked
	ReasonNotTLS      = "not-tls"         // something else on 443
	ReasonMalformed   = "malformed"       // a ClientHello, request or question that isn't one
	ReasonLastHop     = "last-hop"        // Max-Forwards is 0: the request ends at the guard
	ReasonBusy        = "busy"            // too many large heads at the same time
	ReasonMismatch    = "mismatch"        // the worker dialled another address than the name has
	ReasonOtherName   = "other-name"      // the SNI or Host in a CONNECT tunnel is another name
	ReasonOwn         = "own-address"     // an address of the guard itself
	ReasonUpstream    = "upstream"        // a resolver or the upstream proxy
	ReasonGateway     = "gateway"         // the host
	ReasonOnLink      = "on-link"         // another container, or the host's network
	ReasonStripped    = "stripped"        // an address taken out of a DNS answer
	ReasonOverflow    = "overflow"        // too many different events: only counted
	ReasonKernelLost  = "lost"            // denials that the kernel counted but couldn't report
	ReasonUnsupported = "unsupported"     // a protocol that isn't carried, a question that isn't for addresses of the Internet
	ReasonLocalUnsure = "unknown-host"    // the guard can't tell its own addresses
	ReasonPublished   = "published"       // allowed because the port is published
	ReasonUpload      = "upload-budget"   // the rule's budget of bytes is used up
	ReasonWildcard    = "wildcard-budget" // too many or too long new names under a wildcard
	ReasonUnresolved  = "unresolved"      // of a note: an allowed name that has no address, or of which no resolver said
	ReasonUnreachable = "unreachable"     // of a note: allowed, and none of its addresses took the connection
	ReasonPolicy      = "policy"          // of a note: the policy was replaced
	ReasonLive        = "live-change"     // of a note: a live change began or ended
	ReasonLearning    = "learning"        // of a note: rooms began or ended to learn
	ReasonKept        = "kept"            // of a note: live denies and spent budgets of an earlier guard can't be read, or none can be recorded
	ReasonPanic       = "internal-error"  // of a note: serving it panicked; it ended, and nothing else
	ReasonTaken       = "port-taken"      // of a note: a worker's program has a port of the policy (a room without nf_tables)
)

// Denied makes the event of a decision.
func Denied(kind Kind, d firewall.Decision) Event {
	e := Event{Kind: kind, Verdict: Deny, Reason: d.Reason, Suggest: d.Suggest}
	if d.Rule != nil {
		e.Rule = d.Rule.Line
	}
	return e
}

// Panicked makes the event of something that was served and panicked.
func Panicked(kind Kind) Event { return Event{Kind: kind, Verdict: Note, Reason: ReasonPanic} }

// Line is the JSON form of one event, as it stands in the guard's log:
// schemas/event.schema.json.
type Line struct {
	// Time is when it was; of several events in one line, when the last one was.
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
	Why      string    `json:"why,omitempty"` // of a denial: a sentence for people
	// BytesUp and BytesDown are the TCP payload that the connections of an end
	// carried: up is from the worker.
	BytesUp   uint64 `json:"bytes_up,omitempty"`
	BytesDown uint64 `json:"bytes_down,omitempty"`
	// Count is how many equal events the line stands for.
	Count uint64 `json:"count"`
}
