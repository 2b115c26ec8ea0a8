package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/secretsource"
	"github.com/llmdo/workshop/internal/trust"
)

// CredentialUse is what lines of a workshop want one of the user's credentials for.
type CredentialUse struct {
	Name   string
	Source string   // in words, without arguments
	Hosts  []string // that it may go to, by the user's file
	// Lines are those of workers that weren't agreed to yet: the worker, and the line.
	Lines []string
}

// credentialLines are the lines of a policy with a credential, with what a user agrees to:
// for each worker of the room the whole line, as the workshop has it.
func credentialLines(p *firewall.Policy) (out []broker.Line) {
	if p == nil {
		return nil
	}
	for _, room := range p.Rooms {
		for _, r := range room.Allow {
			l, ok := lease.LineOf(room.Room, r)
			if !ok || room.Mode == firewall.None {
				continue
			}
			x := broker.Line{Line: l, Workers: room.Workers}
			for _, w := range room.Workers {
				x.Consents = append(x.Consents, w+" "+RuleLine(r, false))
			}
			out = append(out, x)
		}
	}
	return out
}

// creds is what a workshop needs of the user's credentials. No lines and agents: nothing.
type creds struct {
	lines  []broker.Line
	agents []broker.Agent
	byName map[string]credential.Credential
	// missing are what the user wasn't asked about yet.
	missing []CredentialUse
	// digest names all lines. Who wrote them may look for others that have it, too: it is as
	// long as it takes for that to be in vain.
	digest string
}

// agreeCredentials finds out what a project needs of the user's credentials, and asks where
// the user wasn't asked yet. without: none is leased.
func (env *Env) agreeCredentials(ctx context.Context, r *Running, ready *Project, without bool) (*creds, error) {
	if without || len(linesOf(ready))+len(agentLines(ready)) == 0 {
		return &creds{}, nil
	}
	info, err := r.Info(ctx)
	if err != nil {
		return nil, EngineError(err)
	}
	c, err := env.credentials(ctx, info, r.Capabilities().Contained, ready)
	if err == nil {
		err = env.mayStartBroker(ctx, ready)
	}
	if err == nil {
		env.warnModelCalls(c.lines)
		err = c.agree(ctx, env, ready.Dir)
	}
	return c, err
}

// SayCredentials says what `up` would ask about the user's credentials, and fails where it
// would.
func (env *Env) SayCredentials(ctx context.Context, r *Running, ready *Project) error {
	info, err := r.Info(ctx)
	if err != nil {
		return EngineError(err)
	}
	c, err := env.credentials(ctx, info, r.Capabilities().Contained, ready)
	if err != nil {
		return err
	}
	for _, u := range c.missing {
		env.say("`up` asks whether the credential %s (%s) may be used by:", u.Name, Printable(u.Source))
		for _, text := range u.Lines {
			env.say("  %s", Printable(text))
		}
	}
	return nil
}

// credentials finds out what a project needs of the user's credentials. Lines that can't
// have theirs are a failure; nobody is asked and nothing is read but the file.
func (env *Env) credentials(ctx context.Context, e engine.Info, contained bool, ready *Project) (*creds, error) {
	c := &creds{lines: linesOf(ready), agents: agentLines(ready)}
	if len(c.lines)+len(c.agents) == 0 {
		return c, nil
	}
	if !e.Local {
		return nil, Fail(CodeRefused, "nothing was started: the workshop needs your credentials, which leave this machine for no engine elsewhere (%s; B32)", engineAt(e)).
			Hint("use an engine on this machine, or remove `credential` from the lines, and `agents`")
	}
	if err := reachAgents(c.agents, e, contained, ready); err != nil {
		return nil, err
	}
	if env.StateDir() == "" || env.CredentialsFile() == "" {
		return nil, Fail(CodeFailed, "no directory for your credentials and what you agree to: neither HOME nor XDG_CONFIG_HOME and XDG_STATE_HOME are set")
	}
	file := env.CredentialsFile()
	all, list, err := credential.Read(file, env.Home)
	if err != nil {
		return nil, Fail(CodeRefused, "your credentials can't be read, and nothing was started: %w", err)
	}
	if list.HasErrors() {
		env.event(Event{Kind: Problems, Diagnostics: list})
		return nil, Fail(CodeRefused, "%s is invalid: %s; nothing was started", env.Shown(file), Count(list.Count(diag.Error), "error"))
	}
	if err := own(env, ready, all, c.lines); err != nil {
		return nil, err
	}
	c.byName = map[string]credential.Credential{}
	for _, x := range all {
		c.byName[x.Name] = x
	}
	if err := c.check(ctx, env, ready); err != nil {
		return nil, err
	}
	return c, c.compare(env, ready.Dir)
}

// check says which lines can't have their credential.
func (c *creds) check(ctx context.Context, env *Env, ready *Project) error {
	f := &Failure{Code: CodeRefused}
	var problems []string
	add := func(text string) {
		if !slices.Contains(problems, text) {
			problems = append(problems, text)
		}
	}
	for _, l := range c.lines {
		c.checkLine(ctx, env, ready, l, f, add)
	}
	c.checkAgents(ctx, env, ready, f, add)
	if len(problems) == 0 {
		return nil
	}
	f.Err = fmt.Errorf("nothing was started: %s", strings.Join(problems, "\n"))
	return f
}

// digestSize is that of [creds.digest], in bytes.
const digestSize = 20

// compare finds out what the user wasn't asked about yet.
func (c *creds) compare(env *Env, dir string) error {
	agreed, err := trust.Credentials(env.StateDir()).Of(dir)
	if err != nil {
		return Fail(CodeRefused, "nothing was started: %w", err)
	}
	var texts []string
	by := map[string]*CredentialUse{}
	want := func(name, text string) {
		texts = append(texts, name+" "+text)
		if slices.Contains(agreed, trust.Credential{Name: name, Line: text}) {
			return
		}
		u := by[name]
		if u == nil {
			x := c.byName[name]
			u = &CredentialUse{Name: x.Name, Source: x.From()}
			u.Hosts = x.HostTexts()
			by[name] = u
		}
		u.Lines = append(u.Lines, text)
	}
	for _, l := range c.lines {
		for _, text := range l.Consents {
			want(l.Credential, text)
		}
	}
	for _, a := range c.agents {
		want(a.Credential, a.Consent)
	}
	for _, u := range by {
		slices.Sort(u.Lines)
		c.missing = append(c.missing, *u)
	}
	sortfunc.Stable(c.missing, func(x, y CredentialUse) int { return strings.Compare(x.Name, y.Name) })
	slices.Sort(texts)
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	c.digest = hex.EncodeToString(sum[:digestSize])
	return nil
}

// agree asks about what the user wasn't asked about yet, and keeps the answer. A no, or
// nobody there, is a refusal.
func (c *creds) agree(ctx context.Context, env *Env, dir string) error {
	if len(c.missing) == 0 {
		return nil
	}
	accepted := env.Settings.AcceptCredentials
	switch {
	case accepted == c.digest:
	case accepted != "":
		return c.refused("the lines that want your credentials are others than those of the digest %s", Printable(accepted))
	case env.AgreeCredentials == nil:
		return c.refused("nobody agreed on this machine that the workshop uses your credentials so, and nobody is there to ask")
	default:
		yes, err := env.AgreeCredentials(ctx, c.missing)
		if err != nil {
			return err
		}
		if !yes {
			return Fail(CodeRefused, "the use of your credentials was declined; nothing was started")
		}
	}
	for _, u := range c.missing {
		for _, text := range u.Lines {
			if err := trust.Credentials(env.StateDir()).Add(dir, trust.Credential{Name: u.Name, Line: text}); err != nil {
				return Fail(CodeFailed, "%w", err)
			}
		}
	}
	return nil
}

func (c *creds) refused(format string, args ...any) error {
	var lines []string
	for _, u := range c.missing {
		for _, text := range u.Lines {
			lines = append(lines, "  "+Printable(text))
		}
	}
	return Fail(CodeRefused, format+"; nothing was started:\n%s", append(args, strings.Join(lines, "\n"))...).
		Hint("`workshop up` in a terminal asks; `--accept-credentials %s` agrees to these lines as they are", c.digest)
}

// values are the variables that credentials are read from.
func (c *creds) values(env *Env) map[string]string {
	out := map[string]string{}
	for _, l := range c.lines {
		if name := c.byName[l.Credential].Source.Env; name != "" && env.Getenv(name) != "" {
			out[name] = env.Getenv(name)
		}
	}
	if v := env.Getenv(agentVariable); v != "" && len(c.agents) > 0 {
		out[agentVariable] = v
	}
	return out
}

// allowed is what a use may lease now: by the user's file, and by what they agreed to.
func (env *Env) allowed(u broker.Use) (broker.Allowed, error) {
	all, agreed, err := env.mayUse(u)
	if err != nil {
		return nil, err
	}
	out := broker.Allowed{}
	for _, l := range u.Lines {
		at := slices.IndexFunc(all, func(x credential.Credential) bool { return x.Name == l.Credential })
		if at < 0 || len(l.Consents) == 0 || !all[at].For(l.Line) {
			continue
		}
		if !slices.ContainsFunc(l.Consents, func(text string) bool {
			return !slices.Contains(agreed, trust.Credential{Name: l.Credential, Line: text})
		}) {
			out[l.Line] = all[at]
		}
	}
	return out, nil
}

// mayUse reads what a use may lease by: the user's file, and what they agreed to.
func (env *Env) mayUse(u broker.Use) (all []credential.Credential, agreed []trust.Credential, err error) {
	all, list, err := credential.Read(u.File, env.Home)
	if err != nil {
		return nil, nil, err
	}
	if list.HasErrors() {
		return nil, nil, fmt.Errorf("%s is invalid", u.File)
	}
	agreed, err = trust.Credentials(env.StateDir()).Of(u.Directory)
	return all, agreed, err
}

// commandVariables are those of this process that a source may need, see
// [secretsource.Source.Read], beside those of [Env.Places].
func (env *Env) commandVariables() (out []string) {
	for _, name := range secretsource.Environment {
		if v, ok := env.Lookup(name); ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// RevokeCredential forgets all that the user agreed to for a credential, in every project,
// and has each broker take it back at once. It returns how many lines had been agreed to.
func (env *Env) RevokeCredential(ctx context.Context, name string) (lines int, err error) {
	if env.StateDir() == "" {
		return 0, Fail(CodeFailed, "no directory for what you agree to: neither HOME nor XDG_STATE_HOME is set")
	}
	err = trust.Credentials(env.StateDir()).Remove(func(_ string, c trust.Credential) bool {
		if c.Name == name {
			lines++
		}
		return c.Name == name
	})
	if err != nil {
		return 0, Fail(CodeFailed, "nothing was revoked: %w", err)
	}
	sockets, err := env.brokers()
	if err != nil {
		env.warn("not all projects are known: %v", err)
	}
	for _, socket := range sockets {
		if _, err := broker.Call(ctx, socket, broker.Request{Op: broker.OpLook}); err != nil {
			env.warn("a broker doesn't answer (%v): what it has leased ends in %v at the latest", err, lease.Lasting)
		}
	}
	return lines, nil
}
