package firewall

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// UserUpstreamsEnv is the guard's variable with the upstreams (resolvers and the
// proxy) that the user named, not the repository, as HOST:PORT separated by
// commas. Only these may be what [CheckUpstream] refuses.
const UserUpstreamsEnv = "WORKSHOP_USER_UPSTREAMS"

// Proxy is an upstream HTTP proxy.
type Proxy struct {
	Host string // an address or a name, as it is written
	Port uint16
	User *url.Userinfo // nil: none
}

// ParseProxy reads the URL of an upstream proxy,
// http://[user:password@]host[:port]; the port is 80 if absent. Errors don't
// show the URL: it may hold a password.
func ParseProxy(s string) (Proxy, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" || u.Hostname() == "" || strings.HasSuffix(u.Host, ":") || u.Opaque != "" ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return Proxy{}, errors.New("proxy must be a URL of the form http://[user:password@]host:port")
	}
	p := Proxy{u.Hostname(), 80, u.User}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return Proxy{}, errors.New("proxy has a port outside 1 to 65535")
		}
		p.Port = uint16(n)
	}
	return p, nil
}

// String returns HOST:PORT, as [UserUpstreamsEnv] has it.
func (p Proxy) String() string {
	host := strings.ToLower(p.Host)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(int(p.Port))
}

// Exact returns the host as one text for all ways to write it: a name in lower case, or an
// address. ok is false for what is neither.
func (p Proxy) Exact() (host string, ok bool) {
	if a, err := netip.ParseAddr(p.Host); err == nil {
		return a.Unmap().String(), a.Zone() == ""
	}
	n, err := ParseName(p.Host)
	return n.String(), err == nil
}

// checkProxyCredential returns an error if a credential can't be the proxy's.
func (p *Policy) checkProxyCredential() error {
	switch {
	case p.ProxyCredential == "":
		return nil
	case !ValidEndpointName(p.ProxyCredential):
		return fmt.Errorf("the credential's name %q is not a lower-case letter and then letters, digits and single hyphens", clip.Bytes(p.ProxyCredential, shown))
	case p.Proxy == "":
		return errors.New("a credential for a proxy, and there is no proxy")
	case strings.Contains(p.Proxy, "$"):
		return nil
	}
	x, err := ParseProxy(p.Proxy)
	if err != nil {
		return err
	}
	if x.User != nil {
		return fmt.Errorf("the proxy has both a user in its URL and the credential %s", p.ProxyCredential)
	}
	if _, ok := x.Exact(); !ok {
		return errors.New("a proxy with a credential is one host, by its name or its address")
	}
	return nil
}

// CheckUpstream refuses a host, an address or a name, that a repository must not
// make the guard's resolver or proxy: what no rule opens either (B26, B31). What
// a name resolves to is checked when it is dialled.
func CheckUpstream(host string) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return CheckUpstreamAddr(a)
	}
	n, err := ParseName(host)
	if err != nil {
		return err
	}
	if m := n.Machine(); m == LoopbackName || m == MetadataName {
		return fmt.Errorf("%s is a name of the machine itself or of its metadata service", n)
	}
	return nil
}

// CheckUpstreamAddr is [CheckUpstream] for an address.
func CheckUpstreamAddr(a netip.Addr) error {
	if c := Classify(a); !c.Openable() {
		return fmt.Errorf("%s is closed: %s", a, c)
	}
	return nil
}
