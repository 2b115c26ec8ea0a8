package control

import (
	"encoding/json"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// Op says what a request asks for.
type Op string

// The operations.
const (
	// OpState asks what the guard does now. The answer is a [State]. Events that
	// wait for equal ones are written to the log before it.
	OpState Op = "state"
	// OpPolicy replaces the policy by Request.Policy. Live changes and what budgets
	// have spent stay, unless Reset. The answer is an [Applied].
	OpPolicy Op = "policy"
	// OpChange adds Request.Changes to the live changes, all or none of them. One
	// takes the place, port by port, of older ones about the same target, allow or
	// deny. An allow that a deny line closes is refused. With Reset, all older
	// ones go first, learning ends, and what budgets have spent is forgotten. The
	// answer is an [Applied]: a guard that starts again still has the denies then.
	OpChange Op = "change"
	// OpLearn lets rooms learn for Request.For, at most a week, or ends it where
	// that is 0. The answer is an [Applied].
	OpLearn Op = "learn"
	// OpReopen opens rooms that are closed (RoomState.Closed), without the live
	// denies and the spent budgets that can't be read. The answer is an [Applied].
	OpReopen Op = "reopen"
	// OpExplain asks what the guard would do with a connection. The answer is
	// an [Explanation].
	OpExplain Op = "explain"
)

// Request is one line to the guard. Fields that an operation doesn't have are
// absent; unknown ones are refused.
type Request struct {
	Op Op `json:"op"`
	// Policy is a policy file's content, with templates; the guard fills them
	// from its own environment as at its start.
	Policy json.RawMessage `json:"policy,omitempty"`
	Reset  bool            `json:"reset,omitempty"`
	// Changes have no Until: For says how long they last.
	Changes []firewall.Live `json:"changes,omitempty"`
	// Rooms that learn; empty: all.
	Rooms []string `json:"rooms,omitempty"`
	// For is how long changes or learning last, by a clock that nobody sets; 0 of
	// changes: an allow until the guard ends, a deny until a reset or until guard
	// and room have ended.
	For Duration `json:"for,omitempty"`
	// Room, Host and Port are what OpExplain is about: a name or an address. All
	// must be there.
	Room string `json:"room,omitempty"`
	Host string `json:"host,omitempty"`
	Port uint16 `json:"port,omitempty"`
	// NoLookUp says that OpExplain looks no name up.
	NoLookUp bool `json:"no_look_up,omitempty"`
}

// Answer is one line from the guard: an error, or the result of the operation.
type Answer struct {
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// Applied is what a change did.
type Applied struct {
	Generation uint64 `json:"generation"`
	// Cut is how many connections ended because nothing allows them any more.
	Cut int `json:"cut"`
	// Digest of the policy that the guard holds now, without live changes.
	Digest string `json:"digest"`
	// Live is how many live changes there are now.
	Live int `json:"live"`
}

// State is what a guard does now.
type State struct {
	Workshop   string          `json:"workshop"`
	Started    time.Time       `json:"started"`
	Generation uint64          `json:"generation"`
	Digest     string          `json:"digest"` // of the policy, without live changes
	Live       []firewall.Live `json:"live,omitempty"`
	// Learning says until when a room learns.
	Learning map[string]time.Time `json:"learning,omitempty"`
	Rooms    []RoomState          `json:"rooms"`
	// Upstreams that the policy names; without a resolver it is the engine's.
	Upstreams []Upstream `json:"upstreams,omitempty"`
	// Dropped is how many events were counted but not written one by one.
	Dropped uint64 `json:"dropped"`
	// Panics is how many connections, queries and requests ended because serving
	// them panicked.
	Panics uint64 `json:"panics,omitempty"`
	// What the process uses.
	Goroutines  int    `json:"goroutines"`
	Descriptors int    `json:"descriptors"`
	HeapBytes   uint64 `json:"heap_bytes"`
}

// Upstream is what the guard itself connects to.
type Upstream struct {
	Kind string `json:"kind"` // resolver, proxy
	// Address is HOST:PORT, without credentials.
	Address string `json:"address"`
}

// RoomState is one room.
type RoomState struct {
	Room    string        `json:"room"`
	Workers []string      `json:"workers"`
	Mode    firewall.Mode `json:"mode"`
	// Served tells that the guard has the room's sockets.
	Served bool `json:"served"`
	// Closed says why the room isn't served until OpReopen or until it comes anew;
	// "" where it is.
	Closed string `json:"closed,omitempty"`
	// Connections that are carried now.
	Connections int `json:"connections"`
	// Refused is the kernel's count of packets that the room's rules refused.
	Refused uint64 `json:"refused"`
	// Kind is "anyip" for a room without netfilter (docs/decisions/anyip.md).
	Kind string `json:"kind,omitempty"`
	// Budgets are the rules with an upload budget.
	Budgets []BudgetState `json:"budgets,omitempty"`
}

// BudgetState is how much of a budget is used.
type BudgetState struct {
	Target string          `json:"target"`
	Line   string          `json:"line,omitempty"`
	Upload firewall.Budget `json:"upload"`
	// Used are the bytes of the last [firewall.Budget.Per].
	Used int64 `json:"used"`
}

// Explanation is what the guard would do with a connection now.
type Explanation struct {
	// Allowed is what the policy and the budgets say. An allowed name is dialled at
	// those of its addresses that are allowed.
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
	// Rule is the deciding line: target, ports and where it is written.
	Rule    string `json:"rule,omitempty"`
	Line    string `json:"line,omitempty"`
	Suggest string `json:"suggest,omitempty"`
	// Carrier is what would carry it: tls, http, tcp, or none.
	Carrier string `json:"carrier"`
	// Addresses that an allowed name has now, each with the class and whether
	// it would be dialled.
	Addresses []ExplainedAddress `json:"addresses,omitempty"`
	// ResolveError says why an allowed name has none.
	ResolveError string `json:"resolve_error,omitempty"`
}

// ExplainedAddress is one address of an allowed name.
type ExplainedAddress struct {
	Address string `json:"address"`
	Allowed bool   `json:"allowed"`
	Reason  string `json:"reason"`
}

// Duration is a time.Duration as text in JSON: "30m0s".
type Duration time.Duration

// MarshalText writes it as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads it as [time.ParseDuration] does.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}
