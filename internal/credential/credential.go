// Package credential has the user's credentials: where the value of each is, the hosts that
// it may go to, and the header that it is put into. They stand in a file of the user's that
// no workshop can reach or change (B33).
package credential

import (
	"encoding/base64"
	"net"
	"slices"
	"strconv"
	"time"

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
	return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
}

// HostText is one of the hosts as the file has it. A key of an agent has no usual port that
// goes without saying.
func (c *Credential) HostText(h Host) string {
	if c.Agent != "" {
		return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port)))
	}
	return h.String()
}

// ParseAgentHost is [ParseHost] for a key of an agent: its port is 22, if none is given.
func ParseAgentHost(text string) (Host, error) { return parseHost(text, 22) }

// From says in words where the credential is.
func (c *Credential) From() string {
	if c.Agent != "" {
		return "ssh_agent " + c.Agent
	}
	return c.Source.String()
}

// Form is how a value is sent. Header is the name of a header with the value alone; Basic is
// the user of HTTP's basic authentication (RFC 7617) with the value as the password. Both
// empty: a bearer token (RFC 6750), or with GitHub what each of its hosts wants.
type Form struct {
	Header string
	Basic  string
	GitHub bool
}

// gitHubUser is the user of git over HTTPS with a token of GitHub's.
const gitHubUser = "x-access-token"

// Allowed reports whether the credential may go to a host.
func (c *Credential) Allowed(host string, port uint16) bool {
	return slices.Contains(c.Hosts, Host{host, port})
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
	}
	return "Authorization", "Bearer " + value
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}
