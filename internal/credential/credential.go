// Package credential has the user's credentials: where the value of each is, the hosts that
// it may go to, and the header that it is put into. They stand in a file of the user's that
// no workshop can reach or change (B33).
package credential

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/secretsource"
)

// Credential is one entry of the file.
type Credential struct {
	Name   string
	Source secretsource.Source
	// Agent is the fingerprint of a key in the user's ssh-agent, in place of Source: it has
	// no value, and signs.
	Agent string
	// KnownHosts is the file, absolute, of the keys by which an Agent's Hosts are known.
	KnownHosts string
	// Hosts are those that it may go to; at least one, but for an Agent.
	Hosts []Host
	As    Form
	// Lifetime of a value, after which it is read again; 0: until it is refused.
	Lifetime time.Duration
	// Authorities is the file, absolute, of those that the hosts are verified by, in place
	// of the machine's; empty: the machine's.
	Authorities string
	// AskPush has the user asked before each push by git with it: `use: {push: ask}`.
	AskPush bool
	Line    int // in the file, from 1
}

// Host is one host, by its name.
type Host struct {
	Name string
	Port uint16
}

func (h Host) String() string {
	if h.Port == 443 {
		return h.Name
	}
	return h.withPort()
}

// HostText is one of the hosts as the file has it. A key of an agent and a proxy have no usual
// port that goes without saying.
func (c *Credential) HostText(h Host) string {
	if c.Agent != "" || c.As.Proxy {
		return h.withPort()
	}
	return h.String()
}

// ParseAgentHost is [ParseHost] for a key of an agent: its port is 22, if none is given.
func ParseAgentHost(text string) (Host, error) { return parseHost(text, 22) }
func (h Host) withPort() string                { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// From says in words where the credential is.
func (c *Credential) From() string {
	if c.Agent != "" {
		return "ssh_agent " + c.Agent
	}
	return c.Source.String()
}

// Form is how a value is sent. Header is the name of a header with the value alone; Basic is
// the user of HTTP's basic authentication (RFC 7617) with the value as the password. Both
// empty: a bearer token (RFC 6750), or with GitHub what each of its hosts wants. With Proxy
// it is USER:PASSWORD, for an upstream proxy and nothing else.
type Form struct {
	Header string
	Basic  string
	GitHub bool
	Proxy  bool
}

// CheckValue returns an error, without any of it, if a value can't be sent in the form.
func (f Form) CheckValue(value []byte) error {
	if f.Proxy && !bytes.Contains(value, []byte(":")) {
		return ErrNoUser
	}
	return nil
}

// ErrNoUser is a value for a proxy without a user.
var ErrNoUser = errors.New("the value has no colon: for `as: proxy` it is USER:PASSWORD")

// gitHubUser is the user of git over HTTPS with a token of GitHub's.
const gitHubUser = "x-access-token"

// Allowed reports whether the credential may go to a host.
func (c *Credential) Allowed(host string, port uint16) bool {
	return slices.Contains(c.Hosts, Host{host, port})
}

// For reports whether a line may have the credential: the upstream proxy has one of its own
// form, which no endpoint has.
func (c *Credential) For(l lease.Line) bool {
	return c.Agent == "" && c.Name == l.Credential && c.As.Proxy == l.OfProxy() && c.Allowed(l.Host, l.Port)
}

// HostTexts are [Credential.HostText] of all hosts.
func (c *Credential) HostTexts() (out []string) {
	for _, h := range c.Hosts {
		out = append(out, c.HostText(h))
	}
	return out
}

// In returns the header that carries a value to a host.
func (f Form) In(host, value string) (name, text string) {
	switch {
	case f.Header != "":
		return f.Header, value
	case f.Basic != "":
		return "Authorization", basic(f.Basic, value)
	case f.GitHub && host == "github.com":
		return "Authorization", basic(gitHubUser, value)
	case f.Proxy:
		return lease.ProxyHeader, inBase64(value)
	}
	return "Authorization", "Bearer " + value
}

func basic(user, password string) string { return inBase64(user + ":" + password) }

func inBase64(pair string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(pair))
}
