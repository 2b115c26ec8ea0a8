package control

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Op is the operation of a request.
type Op string

// The operations.
const (
	// OpState returns the guard's [State]. Events that wait to be merged with
	// equal ones are written to the log first.
	OpState Op = "state"
	// OpPolicy replaces the policy by Request.Policy. Live changes and spent
	// budgets stay, unless Reset. The response is an [Applied].
	OpPolicy Op = "policy"
	// OpChange adds Request.Changes to the live changes, all or none of them. A
	// change replaces, port by port, older ones for the same target, allow or
	// deny. An allow that a deny line closes is refused. Reset first removes all
	// older changes, ends learning, and clears spent budgets. The response is an
	// [Applied]; from then on denies outlive a restart of the guard.
	OpChange Op = "change"
	// OpLearn begins learning in rooms for Request.For, at most a week, or ends it
	// if that is 0. The response is an [Applied].
	OpLearn Op = "learn"
	// OpReopen opens closed rooms (RoomState.Closed), without the live denies and
	// the spent budgets that can't be read. The response is an [Applied].
	OpReopen Op = "reopen"
	// OpExplain returns an [Explanation]: what the guard would do with a
	// connection.
	OpExplain Op = "explain"
	// OpFailed returns [Failures]: what was refused in the room of Request.Worker at
	// Request.Since or later, and what was allowed and can't be reached. Unlike the
	// log it is complete when it is asked for: what a program was told has been
	// counted before.
	OpFailed Op = "failed"
	// OpAttach makes the connection that of the broker, which brings the values of
	// credentials; there is one at a time. After the response, [Attached], both sides speak
	// as package lease says, until the connection ends.
	OpAttach Op = "attach"
)

// AttachVersion is the version of what a guard and a broker say to each other.
const AttachVersion = 1

// Request is one line to the guard. Fields of other operations, and unknown
// fields, are refused.
type Request struct {
	Op Op `json:"op"`
	// Policy is the content of a policy file, with templates; the guard expands
	// them from its own environment as at its start.
	Policy json.RawMessage `json:"policy,omitempty"`
	Reset  bool            `json:"reset,omitempty"`
	// Changes have no Until: For is how long they last.
	Changes []firewall.Live `json:"changes,omitempty"`
	// Rooms that learn; empty: all.
	Rooms []string `json:"rooms,omitempty"`
	// For is how long changes or learning last, by a clock that can't be set. With
	// 0 an allow lasts until the guard ends, and a deny until a reset or until the
	// workshop is taken down.
	For Duration `json:"for,omitempty"`
	// Room, Host and Port are those of OpExplain, and required; Host is a name or
	// an address.
	Room string `json:"room,omitempty"`
	Host string `json:"host,omitempty"`
	Port uint16 `json:"port,omitempty"`
	// From is where OpExplain's host tries it next, in the room: events of that are
	// marked. An IPv4 address of a loopback, for connections over IPv4 and questions,
	// and the port of those over IPv6.
	From netip.AddrPort `json:"from,omitzero"`
	// NoLookUp keeps OpExplain from looking up names.
	NoLookUp bool `json:"no_look_up,omitempty"`
	// Worker and Since are those of OpFailed, and required.
	Worker string    `json:"worker,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Version is [AttachVersion], required by OpAttach.
	Version int `json:"version,omitempty"`
}

// Answer is one response line of the guard: an error, or the operation's result.
type Answer struct {
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Attached is the result of OpAttach.
type Attached struct {
	Version int `json:"version"`
}

// Applied is the result of a change.
type Applied struct {
	Generation uint64 `json:"generation"`
	// Cut is how many connections were reset because they are no longer allowed.
	Cut int `json:"cut"`
	// Digest of the current policy, without live changes.
	Digest string `json:"digest"`
	// Live is the current number of live changes.
	Live int `json:"live"`
}

// State is the current state of a guard.
type State struct {
	Workshop   string    `json:"workshop"`
	Started    time.Time `json:"started"`
	Generation uint64    `json:"generation"`
	Digest     string    `json:"digest"` // of the policy, without live changes
	// Values is the digest of what the templates of its rules stand for
	// ([firewall.ValuesDigest]).
	Values string          `json:"values,omitempty"`
	Live   []firewall.Live `json:"live,omitempty"`
	// Stored reports whether the next guard and other rooms will have the live denies.
	Stored bool `json:"stored"`
	// Learning has the end of each room's learning.
	Learning map[string]time.Time `json:"learning,omitempty"`
	Rooms    []RoomState          `json:"rooms"`
	// Upstreams that the policy names; without a resolver, the engine's is used.
	Upstreams []Upstream `json:"upstreams,omitempty"`
	// ProxyCredential is that of the upstream proxy; nil: it has none.
	ProxyCredential *CredentialState `json:"proxy_credential,omitempty"`
	// Dropped is how many events were counted but not written individually.
	Dropped uint64 `json:"dropped"`
	// Panics is how many connections, queries and requests ended because serving
	// them panicked.
	Panics uint64 `json:"panics,omitempty"`
	// What the process uses.
	Goroutines  int    `json:"goroutines"`
	Descriptors int    `json:"descriptors"`
	HeapBytes   uint64 `json:"heap_bytes"`
}

// Upstream is a server that the guard itself connects to.
type Upstream struct {
	Kind string `json:"kind"` // resolver, proxy
	// Address is HOST:PORT, without credentials.
	Address string `json:"address"`
	// Credential is the name of the proxy's; empty: none.
	Credential string `json:"credential,omitempty"`
}

// RoomState is one room.
type RoomState struct {
	Room    string        `json:"room"`
	Workers []string      `json:"workers"`
	Mode    firewall.Mode `json:"mode"`
	// Served reports whether the guard has the room's sockets.
	Served bool `json:"served"`
	// Closed is why the room isn't served until OpReopen or until it reconnects;
	// "" if it isn't closed.
	Closed string `json:"closed,omitempty"`
	// Connections currently carried.
	Connections int `json:"connections"`
	// Refused is the kernel's count of packets that the room's rules refused.
	Refused uint64 `json:"refused"`
	// Kind is "anyip" for a room without netfilter (docs/decisions/anyip.md).
	Kind string `json:"kind,omitempty"`
	// Budgets are the rules with an upload budget.
	Budgets []BudgetState `json:"budgets,omitempty"`
	// Credentials are the rules with a credential.
	Credentials []CredentialState `json:"credentials,omitempty"`
}

// CredentialState is a rule with a credential, or the upstream proxy.
type CredentialState struct {
	Name string `json:"name"` // of the credential
	At   string `json:"at"`   // the endpoint; empty for the proxy
	Host string `json:"host"` // with the port for the proxy
	// Leased reports whether the guard has its value now. Without it the endpoint answers 503,
	// and nothing is connected to through the proxy.
	Leased bool `json:"leased"`
}

// BudgetState is the usage of a budget.
type BudgetState struct {
	Target string          `json:"target"`
	Line   string          `json:"line,omitempty"`
	Upload firewall.Budget `json:"upload"`
	// Used is the number of bytes in the last [firewall.Budget.Per].
	Used int64 `json:"used"`
}

// Explanation is what the guard would do with a connection now.
type Explanation struct {
	// Allowed is the decision of policy, budgets and never-list. An allowed name is
	// dialled at those of its addresses that are allowed.
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	// Rule is the deciding line: target, ports and position.
	Rule    string `json:"rule,omitempty"`
	Line    string `json:"line,omitempty"`
	Suggest string `json:"suggest,omitempty"`
	// Carrier would carry it: tls, http, tcp, or none.
	Carrier string `json:"carrier"`
	// Address is the one that it is refused for, whatever line there is for the name
	// or the address; "" for none.
	Address string `json:"address,omitempty"`
	// Addresses are the current ones of a name that lines allow, each with its class
	// and whether it would be dialled.
	Addresses []ExplainedAddress `json:"addresses,omitempty"`
	// ResolveError is why such a name has none.
	ResolveError string `json:"resolve_error,omitempty"`
	// Proxy is the upstream proxy that would dial them, HOST:PORT; "" for none.
	Proxy string `json:"proxy,omitempty"`
	// ProxyError is why it can't: it was tried.
	ProxyError string `json:"proxy_error,omitempty"`
}

// NoAddress is the ResolveError of a name that resolvers answered for.
const NoAddress = "the name has no address"

// ExplainedAddress is one address of an allowed name.
type ExplainedAddress struct {
	Address string `json:"address"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// Failures are the last different ones of a room (events.Sink.Failed), in order of
// time.
type Failures struct {
	Events []events.Line `json:"events"`
	// Room is the worker's, Workers are all that share it.
	Room    string   `json:"room,omitempty"`
	Workers []string `json:"workers,omitempty"`
}

// Duration is a time.Duration as text in JSON: "30m0s".
type Duration time.Duration

// MarshalText returns the text of [time.Duration.String].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses text as [time.ParseDuration] does.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
