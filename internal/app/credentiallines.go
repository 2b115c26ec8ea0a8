package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// linesOf are all lines of a project with a credential.
func linesOf(ready *Project) []broker.Line {
	return append(credentialLines(ready.Compiled.Policy), proxyLines(ready)...)
}

// proxyLines is the line of the upstream proxy, if it has a credential and a room has a
// network. Generated files have no values of variables, so these come from the workshop, as
// the guard gets them.
func proxyLines(ready *Project) []broker.Line {
	if ready.Compiled.Policy == nil {
		return nil
	}
	n := &ready.Workshop.Container.Network
	p := *ready.Compiled.Policy
	p.Proxy, p.Resolvers = n.Proxy.V, nil
	for _, r := range n.DNS {
		p.Resolvers = append(p.Resolvers, r.V)
	}
	all := lease.LinesOf(&p)
	at := slices.IndexFunc(all, lease.Line.OfProxy)
	if at < 0 {
		return nil
	}
	x := broker.Line{Line: all[at]}
	for _, room := range p.Rooms {
		if room.Mode != firewall.None {
			x.Workers = append(x.Workers, room.Workers...)
		}
	}
	slices.Sort(x.Workers)
	x.Consents = []string{proxyConsent(x.Line, p.Resolvers)}
	return []broker.Line{x}
}

// proxyConsent is what a user agrees to: the proxy, and who says at which address its name is.
// No line of a worker's is the same: a rule begins with a brace, an agent with its use.
func proxyConsent(l lease.Line, resolvers []string) string {
	text := "proxy " + lineHost(l) + " credential " + l.Credential
	if len(resolvers) > 0 {
		text += " dns " + strings.Join(resolvers, ", ")
	}
	return text
}

// lineHost is where a line sends its credential, as the file of credentials has it.
func lineHost(l lease.Line) string {
	c := credential.Credential{Hosts: []credential.Host{{Name: l.Host, Port: l.Port}}, As: credential.Form{Proxy: l.OfProxy()}}
	return c.HostTexts()[0]
}

// checkLine says why a line can't have its credential.
func (c *creds) checkLine(ctx context.Context, env *Env, ready *Project, l broker.Line, f *Failure, add func(string)) {
	file := env.Shown(env.CredentialsFile())
	x, known := c.byName[l.Credential]
	host := lineHost(l.Line)
	switch {
	case !known && l.OfProxy():
		add(fmt.Sprintf("the upstream proxy %s needs the credential %s, which %s doesn't have", host, l.Credential, file))
		f.Hint("add it, with a variable that has USER:PASSWORD: `workshop credential add %s --as proxy --env CORP_PROXY --host %s`; or remove `proxy_credential`", l.Credential, host)
	case !known:
		add(fmt.Sprintf("the line of %s needs the credential %s, which %s doesn't have", l.Host, l.Credential, file))
		f.Hint("`workshop credential add %s` adds it; or remove `credential: %s` from the line", l.Credential, l.Credential)
	case x.Agent != "" && l.OfProxy():
		add(fmt.Sprintf("%s:%d: the credential %s is a key of your ssh-agent, which can't be sent to the upstream proxy", file, x.Line, x.Name))
		f.Hint("name another credential there, with `as: proxy`; keys are for `agents`")
	case x.Agent != "":
		add(fmt.Sprintf("%s:%d: the credential %s is a key of your ssh-agent, which can't be added to requests of %s", file, x.Line, x.Name, l.Host))
		f.Hint("name another credential there; keys are for `agents`")
	case l.OfProxy() && !x.As.Proxy:
		add(fmt.Sprintf("%s:%d: the credential %s is sent as %s, and the upstream proxy %s needs one with `as: proxy`", file, x.Line, x.Name, x.As, host))
		f.Hint("name another credential in `proxy_credential`, or write `as: proxy` there, with a value USER:PASSWORD")
	case !l.OfProxy() && x.As.Proxy:
		add(fmt.Sprintf("%s:%d: the credential %s is for an upstream proxy (`as: proxy`), and can't be added to requests of %s", file, x.Line, x.Name, l.Host))
		f.Hint("name another credential in the line; this one is for `proxy_credential`, beside `proxy`")
	case !x.For(l.Line):
		add(fmt.Sprintf("%s:%d: the credential %s may not go to %s, as the line of the workshop wants it", file, x.Line, x.Name, host))
		f.Hint("only if you trust that host with it, add %s to its `hosts`", host)
	case x.Source.Env != "":
		if env.Getenv(x.Source.Env) == "" && !isLeased(ctx, ready, x.Name) {
			add(fmt.Sprintf("the credential %s is in the variable %s, which isn't set", x.Name, x.Source.Env))
			f.Hint("set %s for this command", x.Source.Env)
		}
	}
}

// isLeased reports whether a project's broker has a credential.
func isLeased(ctx context.Context, ready *Project, name string) bool {
	a, err := broker.Call(ctx, brokerSocket(ready.Compiled.Facts.RuntimeDir), broker.Request{Op: broker.OpStatus})
	return err == nil && slices.ContainsFunc(a.Credentials, func(s broker.Status) bool { return s.Name == name && s.Lines > 0 })
}
