package workshop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

func (u *Upstream) decode(d *decoder, n *node, f *field) bool {
	s, ok := d.scalar(n, f, &u.V)
	if !ok {
		return false
	}
	u.Source = s.source()
	if !d.parse(s, f, &u.V) {
		return false
	}
	u.NamedBy = s.originOf(hostIn(u.V))
	before := d.errors
	if f != nil && f.keyName == "dns" {
		d.checkResolver(*u)
	} else {
		d.checkProxy(*u, s)
	}
	return d.errors == before
}

// userInfoOf returns whose the user and the password of a proxy's URL are: the user's only
// where all bytes of both are.
func (s scalar) userInfoOf() Origin {
	text := s.text()
	from := strings.Index(text, "://") + len("://")
	info := text[from:max(from, strings.LastIndexByte(text, '@'))]
	name, password, _ := strings.Cut(info, ":")
	if name != "" && s.originOf(from, from+len(name)) != OfUser || password != "" && s.originOf(from+len(info)-len(password), from+len(info)) != OfUser {
		return OfFile
	}
	return OfUser
}

func (*Upstream) schema(g *schemaMaker) object { return object{"type": "string"} }

// originOf is the user's exactly where all bytes of a part of the text are.
func (s scalar) originOf(from, to int) Origin {
	at := 0
	for _, p := range s.parts {
		end := at + len(p.text)
		if p.origin != OfUser && at < to && end > from {
			return OfFile
		}
		at = end
	}
	if from >= to || to > at {
		return OfFile
	}
	return OfUser
}

// hostIn finds the host of a resolver or a proxy's URL, between two bytes. What
// is not well formed is refused elsewhere.
func hostIn(text string) (from, to int) {
	if i := strings.Index(text, "://"); i >= 0 {
		from = i + len("://")
	}
	to = from + len(strings.TrimRight(text[from:], "/"))
	if i := strings.LastIndexByte(text[from:to], '@'); i >= 0 {
		from += i + 1
	}
	host := text[from:to]
	switch end := strings.IndexByte(host, ']'); {
	case strings.HasPrefix(host, "[") && end > 0:
		return from + 1, from + end
	case strings.Count(host, ":") == 1:
		return from, from + strings.IndexByte(host, ':')
	}
	return from, to
}

// upstreamHint is what to do about an upstream that only the user can name.
const upstreamHint = "if you mean that, write ${%s} here and set it in your environment or in a file of --env-file; the repository can't"

func (d *decoder) checkResolver(x Upstream) {
	// The guard reads it so: what passes here must not stop it at the start.
	a, err := firewall.ParseResolver(x.V)
	switch {
	case err != nil:
		d.fail(x.Source.Range, "bad-value", fmt.Sprintf("the resolver %q is not an address", clip(x.V)), "write an IP address, with :PORT where it isn't 53")
	case x.NamedBy == OfFile:
		if err := firewall.CheckUpstreamAddr(a.Addr()); err != nil {
			d.failDetail(x.Source.Range, "upstream-refused", fmt.Sprintf("the resolver can't be named by this file: %v", err),
				"The guard asks the machine's own resolvers where no dns is written.", "remove it; "+fmt.Sprintf(upstreamHint, "RESOLVER"))
		}
	}
}

// proxyPattern is in the JSON Schema.
const proxyPattern = `^http://[^/\s]+/?$`

var proxyRE = lazily(proxyPattern)

// checkProxyCredential refuses a credential of a container that has no proxy, or one whose URL
// has another user.
func (d *decoder) checkProxyCredential(n *partialNetwork) {
	if n == nil || n.ProxyCredential == nil {
		return
	}
	at := n.ProxyCredential.Source.Range
	if n.Proxy == nil || n.Proxy.V == "" && n.Proxy.Source.Template == "" {
		d.fail(at, "proxy-credential", "proxy_credential is for a proxy, and there is none", "write proxy: http://HOST:PORT beside it, or remove it")
		return
	}
	if p, err := firewall.ParseProxy(n.Proxy.V); err == nil && p.User != nil {
		d.problems.add(diag.Diagnostic{Severity: diag.Error, Code: "proxy-credential", Range: at,
			Summary: "the proxy's URL has a user, and proxy_credential names another", Hint: "take the user and the password out of the URL, or remove proxy_credential",
			Related: []diag.Related{{Message: "proxy is here", Range: n.Proxy.Source.Range}}})
	}
}

func (d *decoder) checkProxy(x Upstream, s scalar) {
	if x.V == "" {
		return
	}
	p, err := firewall.ParseProxy(x.V)
	if err == nil && !proxyRE().MatchString(x.V) {
		err = errors.New("proxy is not the URL of an HTTP proxy")
	}
	switch {
	case err != nil:
		d.fail(x.Source.Range, "bad-value", err.Error(), "write proxy: http://proxy.internal:3128")
	case p.User != nil && s.userInfoOf() == OfFile:
		d.failDetail(x.Source.Range, "upstream-refused", "the proxy's user and password can't be in this file",
			"Who reads the repository could read them.", "write ${EGRESS_PROXY} here, and set that to the whole URL in your environment or in a file of --env-file")
	case x.NamedBy == OfFile:
		if err := firewall.CheckUpstream(p.Host); err != nil {
			d.failDetail(x.Source.Range, "upstream-refused", fmt.Sprintf("the proxy can't be named by this file: %v", err),
				"The guard connects to it itself, where rules don't bind it (B26, B31).", fmt.Sprintf(upstreamHint, "EGRESS_PROXY"))
		}
	}
}
