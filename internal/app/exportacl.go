package app

import (
	"context"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/egressacl"
)

// egressProxies write the rules of proxies, by their names.
var egressProxies = map[string]egressacl.Renderer{"squid": egressacl.Squid, "envoy": egressacl.Envoy}

// EgressACL is the policy of a workshop file as rules of an egress proxy.
type EgressACL struct {
	Text []byte // nil where the diagnostics have an error
	// Diagnostics say where the rules allow more or less than the guard. Sources are the
	// files' texts, by names as the user would write them.
	Diagnostics diag.List
	Sources     map[string][]byte
}

// Code is the exit code of the result.
func (a *EgressACL) Code(strict bool) int {
	if strict && len(a.Diagnostics) > 0 {
		return CodeInvalid
	}
	return codeOf(a.Diagnostics)
}

// ExportACL writes what workers may reach by the file, or one of them, as rules of an
// egress proxy. No engine is asked. guard is the guard's user at a squid; empty: none.
func (env *Env) ExportACL(ctx context.Context, proxy, worker, guard string) (*EgressACL, error) {
	render := egressProxies[proxy]
	switch {
	case render == nil:
		return nil, Fail(CodeUsage, "no egress proxy %q", proxy).Hint("squid and envoy are known")
	case guard != "" && !egressacl.ValidGuard(guard):
		return nil, Fail(CodeUsage, "--guard %q: a user of squid has letters, digits and ._@- only, at most 64", guard)
	case guard != "" && proxy != "squid":
		return nil, Fail(CodeUsage, "--guard is for squid alone: a guard can't log in at %s", proxy)
	}
	c, err := env.Compile(ctx)
	if err != nil {
		return nil, err
	}
	policy := c.Compiled.Policy
	if worker != "" {
		if err := c.CheckWorkers([]string{worker}); err != nil {
			return nil, err
		}
		policy = roomPolicy(policy, c.Compiled.RoomOf[worker])
	}
	if policy == nil {
		policy = &firewall.Policy{Workshop: c.Workshop.Name.V}
	}
	text, list := render(policy, egressacl.Options{Guard: guard})
	shown := *c.Source
	shown.Diagnostics = list
	out := &EgressACL{Text: text}
	out.Diagnostics, out.Sources = shown.Shown()
	return out, nil
}

// roomPolicy is a policy of one room; p may be nil.
func roomPolicy(p *firewall.Policy, room string) *firewall.Policy {
	if p == nil {
		return nil
	}
	q := *p
	q.Rooms = slices.DeleteFunc(slices.Clone(p.Rooms), func(r firewall.RoomPolicy) bool { return r.Room != room })
	return &q
}
