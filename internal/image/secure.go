package image

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// secure refuses plain HTTP to any host but this machine, as Docker does: the library
// also tries it for private addresses and names below .local. Nor may a remote registry
// lead to this machine, by its token server or a redirect: local services trust their
// clients. The user's credentials go to the registry alone, not to a token server that it
// names elsewhere (go-containerregistry#2193).
type secure struct {
	next     http.RoundTripper
	registry string // its host, with the port if it has one
}

// maxRedirects bounds the redirects of one request, as net/http does where nothing else is
// asked.
const maxRedirects = 10

func (s secure) RoundTrip(r *http.Request) (*http.Response, error) {
	if thisMachine(r.URL.Hostname()) && !thisMachine(hostname(s.registry)) {
		return nil, fmt.Errorf("the registry redirects to %s, which is this machine", r.URL.Host)
	}
	if r.URL.Scheme != "https" && !loopback(r.URL.Hostname()) {
		return nil, fmt.Errorf("%s without TLS: only registries on localhost may lack it", r.URL.Host)
	}
	if hasCredentials(r) && !s.own(r.URL) {
		return nil, fmt.Errorf("the registry %s asks for your credentials at %s, and they are sent to its own host alone", s.registry, r.URL.Host)
	}
	redirects := 0
	for from := r.Response; from != nil && from.Request != nil; from = from.Request.Response {
		if redirects++; redirects > maxRedirects {
			return nil, fmt.Errorf("the registry %s redirects more than %d times", s.registry, maxRedirects)
		}
	}
	return s.next.RoundTrip(r)
}

// hasCredentials reports whether a request has a password or an identity token, which is in
// the form of a POST (distribution specification, token authentication). Tokens of a token
// server aren't meant: the library sends each to one host.
func hasCredentials(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Basic") || r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/x-www-form-urlencoded"
}

// own reports whether an address is the registry's: on its host, or on another one of its
// registered domain, as the token servers of auth.docker.io and gitlab.com are. On this
// machine each port is another service.
func (s secure) own(u *url.URL) bool {
	registry, host := strings.ToLower(hostname(s.registry)), strings.ToLower(u.Hostname())
	switch {
	case strings.EqualFold(u.Host, s.registry):
		return true
	case thisMachine(registry):
		return false
	case host == registry:
		return true
	}
	for _, h := range []string{registry, host} {
		if _, err := netip.ParseAddr(h); err == nil {
			return false
		}
	}
	domain := firewall.RegisteredDomain(registry)
	return domain != "" && domain == firewall.RegisteredDomain(host)
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// thisMachine reports whether a host is, or may be, the machine itself.
func thisMachine(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	a, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && (a.Unmap().IsLoopback() || a.IsUnspecified())
}

// hostname is a host without its port.
func hostname(address string) string {
	if name, _, err := net.SplitHostPort(address); err == nil {
		address = name
	}
	return strings.Trim(address, "[]")
}
