package app

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/secretsource"
)

// TestedCredential is a credential whose source was read: it has a value that fits into a
// header.
type TestedCredential struct {
	CredentialInfo
	Took time.Duration
	// IsKey: it is a key of the user's ssh-agent, which signs and has no value.
	IsKey bool
	// Headers are those that carry the value, one for each of Hosts: "x-api-key" or
	// "Authorization: Bearer"; of a key: who signs.
	Headers []string
}

// TestCredential reads the source of a credential, and asks no host.
func (env *Env) TestCredential(ctx context.Context, name string) (TestedCredential, error) {
	f, err := env.readCredentials()
	if err != nil {
		return TestedCredential{}, err
	}
	c, err := f.named(name)
	if err != nil {
		return TestedCredential{}, err
	}
	if c.Agent != "" {
		return env.testAgent(f, c)
	}
	began := time.Now()
	value, err := c.Source.Read(ctx, env.Lookup)
	if err == nil {
		err = c.As.CheckValue(value)
	}
	clear(value)
	took := time.Since(began)
	if ctx.Err() != nil {
		return TestedCredential{}, context.Cause(ctx)
	}
	if err != nil {
		return TestedCredential{}, env.noValue(f, c, err)
	}
	if _, err := readRoots(c); err != nil {
		return TestedCredential{}, Fail(CodeFailed, "%s: the credential %s: ca: %w", f.place(c), c.Name, err).
			Hint("ca is a file of certificates in PEM")
	}
	t := TestedCredential{CredentialInfo: credentialInfo(c), Took: took}
	for _, h := range c.Hosts {
		t.Headers = append(t.Headers, c.As.Describe(h.Name))
	}
	return t, nil
}

// testAgent looks whether the user's ssh-agent has a key, and known_hosts its hosts.
func (env *Env) testAgent(f *credentialsText, c credential.Credential) (TestedCredential, error) {
	began := time.Now()
	_, err := env.agentHas(c.Agent)
	if err != nil {
		return TestedCredential{}, Fail(CodeFailed, "%s: the key %s: %w", f.place(c), c.Name, err).Hint("%s", agentHint(err))
	}
	t := TestedCredential{CredentialInfo: credentialInfo(c), Took: time.Since(began), IsKey: true}
	for _, h := range c.Hosts {
		keys, err := knownKeys(c, broker.AgentHost(h))
		switch {
		case err != nil:
			return TestedCredential{}, Fail(CodeFailed, "%s: the key %s: %w", f.place(c), c.Name, err)
		case len(keys) == 0:
			return TestedCredential{}, Fail(CodeFailed, "%s: %s has no key of %s", f.place(c), env.Shown(c.KnownHosts), h).
				Hint("log in there once yourself, and compare the key of the host that ssh shows")
		}
		t.Headers = append(t.Headers, "signed by your ssh-agent")
	}
	return t, nil
}

// noValue says what to do about a source without a value.
func (env *Env) noValue(f *credentialsText, c credential.Credential, err error) error {
	fail := Fail(CodeFailed, "%s: the credential %s has no value: %w", f.place(c), c.Name, err)
	s := c.Source
	switch {
	case c.As.Proxy && errors.Is(err, credential.ErrNoUser):
		return fail.Hint("give it the user and the password of the proxy, with a colon between them")
	case s.Env != "":
		if _, set := env.Lookup(s.Env); !set {
			return fail.Hint("set it in the shell that runs `workshop up`, without a trace in its history: `read -rs %s; export %s`", s.Env, s.Env)
		}
		return fail.Hint("set %s to the token alone, as one line", s.Env)
	case s.File != "":
		if errors.Is(err, fs.ErrNotExist) {
			return fail.Hint("make it, for you alone, and write the token into it: `install -m 600 /dev/null %s`", shellquote.Path(s.File))
		}
		return fail.Hint("the file has the token alone, and is yours alone: `chmod 600 %s`", shellquote.Path(s.File))
	case errors.Is(err, secretsource.ErrKeyring):
		return fail.Hint("unlock the keyring, or keep the token elsewhere: `workshop credential remove %s`, then `workshop credential add %s --token-file PATH`", c.Name, c.Name)
	case s.Keyring != "":
		return fail.Hint("store it: `workshop credential remove %s`, then `workshop credential add %s --keyring`", c.Name, c.Name)
	}
	return fail.Hint("run the command of %s by hand: it prints the token alone, and needs nobody to type", f.place(c))
}
