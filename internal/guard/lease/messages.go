package lease

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// Line is a line of the policy that has a credential, in one room, or the upstream proxy's,
// whose Room and At are empty.
type Line struct {
	Room       string `json:"room"`
	At         string `json:"at"` // the endpoint
	Host       string `json:"host"`
	Port       uint16 `json:"port"`
	Credential string `json:"credential"`
	// Rule is a digest of what the line lets through, see [RuleDigest]: another is another
	// line, to which nobody has agreed.
	Rule string `json:"rule"`
}

// RuleDigest tells lines apart by the requests, repositories and addresses that they let
// through: 16 hexadecimal digits of SHA-256.
func RuleDigest(r firewall.Rule) string {
	text := r.Endpoint.String()
	if r.Private {
		text += " private"
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// LineOf returns the line of a rule in a room; ok reports whether the rule has a credential.
func LineOf(room string, r firewall.Rule) (l Line, ok bool) {
	name, exact := r.Host.Name()
	if r.Endpoint.Credential == "" || !exact || len(r.Ports) == 0 {
		return Line{}, false
	}
	return Line{room, r.Endpoint.At, name.String(), r.Ports[0].First, r.Endpoint.Credential, RuleDigest(r)}, true
}

// ProxyLine returns the line of a policy's upstream proxy, which all rooms share; ok reports
// whether it has a credential. The resolvers are part of its rule: the proxy speaks no TLS, so
// who answers for its name gets the value.
func ProxyLine(p *firewall.Policy) (l Line, ok bool) {
	x, err := firewall.ParseProxy(p.Proxy)
	if err != nil || p.ProxyCredential == "" || x.User != nil {
		return Line{}, false
	}
	host, ok := x.Exact()
	if !ok {
		return Line{}, false
	}
	text := "proxy " + p.ProxyCredential // no endpoint's begins so
	for _, r := range p.Resolvers {
		if a, err := firewall.ParseResolver(r); err == nil {
			text += " " + a.String()
		}
	}
	sum := sha256.Sum256([]byte(text))
	return Line{Host: host, Port: x.Port, Credential: p.ProxyCredential, Rule: hex.EncodeToString(sum[:8])}, true
}

// ProxyHeader is the header that the value of a [ProxyLine] is sent as, and no other is.
const ProxyHeader = "Proxy-Authorization"

// OfProxy reports whether it is the upstream proxy's line, which is of no room.
func (l Line) OfProxy() bool { return l.Room == "" && l.At == "" }

// LinesOf returns the lines of a policy that have a credential.
func LinesOf(p *firewall.Policy) (out []Line) {
	carries := false
	for _, room := range p.Rooms {
		if room.Mode == firewall.None {
			continue
		}
		carries = true
		for _, r := range room.Allow {
			if l, ok := LineOf(room.Room, r); ok {
				out = append(out, l)
			}
		}
	}
	if l, ok := ProxyLine(p); ok && carries {
		out = append(out, l)
	}
	return out
}

// Lines is what the guard says when a broker has attached and after each change of the
// policy: all lines with a credential.
type Lines struct {
	Lines []Line `json:"lines"`
	// More: the next message has further ones. Only [Reader] and [Write] know it.
	More bool `json:"more,omitempty"`
}

// Refused is what the guard says when a host has answered 401 to a value, at most once a
// minute for each credential.
type Refused struct {
	Credential string `json:"credential"`
	Generation uint64 `json:"generation"`
}

// Lease is what the broker says to have a header added to the requests of a line. The guard
// ignores one that names no line of its policy exactly.
type Lease struct {
	Line
	// Generation tells the values of a credential apart.
	Generation uint64 `json:"generation"`
	// Header is the name of the header, Value its whole value: "Bearer …".
	Header string `json:"header"`
	Value  Value  `json:"value"`
	// Roots are certificates, in DER, that the host's is verified by instead of the policy's.
	Roots [][]byte `json:"roots,omitempty"`
	// AskPush has a person asked before each push by git, see [Ask].
	AskPush bool `json:"ask_push,omitempty"`
}

// Revoke is what the broker says to have all values of a credential forgotten, and the
// requests cut that have one.
type Revoke struct {
	Credential string `json:"credential"`
}

// framing are headers that say how a message is read, or by whom: none is added.
var framing = []string{
	"connection", "content-length", "expect", "forwarded", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
}

// CheckHeader returns an error if a credential can't be sent as the header.
func CheckHeader(name string) error {
	switch {
	case name == "" || len(name) > 64 || strings.Trim(name, letters) != "":
		return errors.New("the header's name is not 1 to 64 letters, digits and hyphens")
	case slices.Contains(framing, strings.ToLower(name)), strings.HasPrefix(strings.ToLower(name), "proxy-"):
		return fmt.Errorf("the header %s is not for credentials", name)
	}
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

// check returns an error if it can't be a line of a policy.
func (l Line) check() error {
	if !l.OfProxy() && (!firewall.ValidRoomName(l.Room) || !firewall.ValidEndpointName(l.At)) ||
		!firewall.ValidEndpointName(l.Credential) || l.Port == 0 || len(l.Rule) != 16 || strings.Trim(l.Rule, "0123456789abcdef") != "" {
		return errors.New("the line is not valid")
	}
	if l.OfProxy() {
		if host, ok := (firewall.Proxy{Host: l.Host}).Exact(); !ok || host != l.Host {
			return errors.New("the host is neither a name nor an address")
		}
		return nil
	}
	if _, err := firewall.ParseName(l.Host); err != nil {
		return errors.New("the host is not a name")
	}
	return nil
}

// check returns an error, without any of the value, if the message isn't valid.
func (m *Lease) check() error {
	if err := m.Line.check(); err != nil {
		return err
	}
	if m.Generation == 0 {
		return errors.New("generation 0")
	}
	if m.OfProxy() {
		return m.checkProxy()
	}
	if err := CheckHeader(m.Header); err != nil {
		return err
	}
	return m.Value.Check()
}

// checkProxy returns an error if it isn't what an upstream proxy is sent: Basic
// authentication (RFC 7617), without what is for TLS and for pushes.
func (m *Lease) checkProxy() error {
	switch {
	case m.Header != ProxyHeader:
		return errors.New("the upstream proxy is sent one header alone, " + ProxyHeader)
	case len(m.Roots) > 0 || m.AskPush:
		return errors.New("the upstream proxy has neither roots nor pushes")
	case !bytes.HasPrefix(m.Value, []byte("Basic ")):
		return errors.New("the upstream proxy is sent basic authentication alone")
	}
	return m.Value.Check()
}
