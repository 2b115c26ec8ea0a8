package tool

import (
	"encoding/json"
	"time"
)

// Grant is what one worker's tools may do. The compile writes it as JSON into
// the arguments of the worker's gate, where the toolbox reads it: so it stands
// in the generated project, and nothing that a client sends can widen it (B41).
// The zero value grants nothing.
type Grant struct {
	Worker string  `json:"worker"`
	Tools  []Offer `json:"tools,omitempty"`
	// TimeoutMS bounds one call, in milliseconds (resources.timeout).
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// MCP are the stdio servers that the worker may use, by name.
	MCP map[string]Server `json:"mcp,omitempty"`
}

// Timeout of one call; 0: none.
func (g *Grant) Timeout() time.Duration { return time.Duration(g.TimeoutMS) * time.Millisecond }

// Offer is one entry of a worker's tools. Where a tool stands more than once,
// each entry allows what its Limit says.
type Offer struct {
	// Name is one of ours, mcp__SERVER (all tools of a server) or
	// mcp__SERVER__TOOL.
	Name string `json:"name"`
	// Limit is the part in parentheses of Bash(git:*) or
	// WebFetch(domain:example.org); empty: no limit.
	Limit string `json:"limit,omitempty"`
}

// Server is an MCP server inside of a worker that speaks over its standard
// input and output.
type Server struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	// Secrets gives variables the value of a secret (/run/secrets/NAME).
	Secrets map[string]string `json:"secrets,omitempty"`
}

// NotOfferedError says that a worker hasn't a tool, or not for these
// arguments (B41).
type NotOfferedError struct {
	Worker, Tool string
	// Why, where the tool is offered with a limit that the call exceeds.
	Why string
	// Offered lists what the worker has.
	Offered []string
}

// Check tells whether the grant offers a call: nil, or a [NotOfferedError].
// Arguments that can't be read are no matter of the grant, unless a limit must
// look at them.
//
// A shell that is limited takes no line: the host parses a line into argv
// ([ShellArgs.Argv]) where it is one plain command.
func (g *Grant) Check(name string, args json.RawMessage) error { panic("not built") }

// CheckURL is Check of fetch_url for one URL: each hop of a redirect is checked.
func (g *Grant) CheckURL(url string) error { panic("not built") }

// Excess gives the offers of a delegate that none of its caller's covers (B40).
func Excess(delegate, caller []Offer) []Offer { panic("not built") }

// CheckOffer tells what is wrong with an entry (a limit that the tool doesn't
// know, a pattern that can't be read); nil for a good one.
func CheckOffer(o Offer) error { panic("not built") }

func (e *NotOfferedError) Error() string { panic("not built") }
