package app

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/secretsource"
)

// NewCredential is a credential that is to be added. At most one of Env, File, Keyring,
// Command and Agent says where it is; without one a template does.
type NewCredential struct {
	Name     string
	Template string // empty: the one of that name, if there is one
	Env      string
	File     string
	Keyring  string // entry of the keyring, or [OwnEntry]
	Command  []string
	// Agent is the fingerprint of a key of the user's ssh-agent, and KnownHosts the file that
	// has its hosts; empty: the user's usual one.
	Agent, KnownHosts string
	// Hosts, As, Lifetime and Authorities take the place of the template's.
	Hosts       []string // HOST or HOST:PORT
	As          string   // as credential.Form.String has it
	Lifetime    time.Duration
	Authorities string
	// Secret asks for the value that is put into the keyring; an empty one is none.
	Secret func(ctx context.Context, question string) ([]byte, error)
}

// OwnEntry stands for an entry of the keyring with the credential's name.
const OwnEntry = "NAME"

// AddedCredential is what was added.
type AddedCredential struct {
	CredentialInfo
	File string // as the user would write it
	New  bool   // the file was made
	Text string // the line
	// Lines are for `allow` of a workshop.yaml, or with IsKey for `agents`.
	Lines []string
	// IsKey: it is a key of the user's ssh-agent.
	IsKey bool
	// Stored is the entry of the keyring that got the value; empty: none.
	Stored string
}

// AddCredential adds an entry to the user's file, and reads its source not yet.
func (env *Env) AddCredential(ctx context.Context, n NewCredential) (AddedCredential, error) {
	none := AddedCredential{}
	if !firewall.ValidEndpointName(n.Name) {
		return none, Fail(CodeUsage, "%q is not a name: "+firewall.EndpointNameForm, n.Name)
	}
	f, err := env.readCredentials()
	if err != nil {
		return none, err
	}
	c, t, err := env.newCredential(n)
	if err != nil {
		return none, err
	}
	text, err := credential.Add(f.text, env.Home, c)
	_, byHand := errors.AsType[*credential.ByHandError](err)
	switch {
	case errors.Is(err, credential.ErrExists):
		there, _ := f.named(c.Name)
		return none, Fail(CodeFailed, "%s: the credential %s exists already", f.place(there), c.Name).Hint("`workshop credential remove %s` removes it", c.Name)
	case byHand:
		return none, f.unedited(err)
	case err != nil:
		return none, Fail(CodeUsage, "the credential %s: %w", c.Name, err)
	}
	added := AddedCredential{File: f.shown, New: f.text == nil, Text: c.Text(env.Home), IsKey: c.Agent != ""}
	if added.IsKey {
		added.Lines = agentLinesOf(c)
	} else {
		added.Lines = t.Lines(c)
	}
	if n.Keyring != "" {
		if added.Stored, err = n.store(ctx, c); err != nil {
			return none, err
		}
	}
	if err := f.write(text); err != nil {
		return none, err
	}
	c.Line = strings.Count(strings.TrimRight(string(text), "\r\n"), "\n") + 1
	added.CredentialInfo = credentialInfo(c)
	return added, nil
}

func credentialInfo(c credential.Credential) CredentialInfo {
	i := CredentialInfo{Name: c.Name, Source: c.From(), Hosts: c.HostTexts(), As: c.As.String(), CA: c.Authorities, Line: c.Line}
	if c.Agent != "" {
		i.As = "ssh"
	}
	if c.Lifetime > 0 {
		i.TTL = durationtext.Of(c.Lifetime)
	}
	return i
}

// store puts the value that a person gives into the keyring, and returns the entry. Without
// a value an entry that is there stays, and "" is returned.
func (n NewCredential) store(ctx context.Context, c credential.Credential) (string, error) {
	entry := c.Source.Keyring
	value, err := n.Secret(ctx, "token of "+c.Name+", for "+hostsText(c))
	defer clear(value)
	if err != nil {
		return "", err
	}
	if len(strings.TrimSpace(string(value))) > 0 {
		err = secretsource.Store(ctx, entry, value)
	} else if there, missing := c.Source.Read(ctx, nil); missing == nil {
		clear(there)
		return "", nil
	} else if err = missing; errors.Is(err, secretsource.NoEntryError(entry)) {
		return "", Fail(CodeUsage, "no token was given, and %w; nothing was written", err).
			Hint("run it on a terminal, or give the token on the standard input: `workshop credential add %s --keyring <FILE`", n.Name)
	}
	if err != nil {
		fail := Fail(CodeFailed, "%w; nothing was written", err)
		if errors.Is(err, secretsource.ErrKeyring) {
			return "", fail.Hint(noKeyring, n.Name)
		}
		return "", fail
	}
	return entry, nil
}

// noKeyring is a hint with the name of a credential.
const noKeyring = "where no keyring runs or it stays locked, keep the token in a file of yours (chmod 600): `workshop credential add %s --token-file PATH`"

// newCredential makes the credential, and returns the template that it is made by.
func (env *Env) newCredential(n NewCredential) (c credential.Credential, t credential.Template, err error) {
	t, _ = credential.TemplateNamed(n.Name)
	if n.Template != "" {
		var known bool
		if t, known = credential.TemplateNamed(n.Template); !known {
			return c, t, Fail(CodeUsage, "there is no template %q", n.Template).Hint("the templates are %s", templateNames())
		}
	}
	c = credential.Credential{Name: n.Name, As: t.As, Lifetime: n.Lifetime}
	if c.Source, err = env.newSource(n, t); err != nil {
		return c, t, err
	}
	if n.Agent != "" {
		c, err = env.newKey(n)
		return c, t, err
	}
	if c.Source.Env == "" && c.Source.File == "" && c.Source.Keyring == "" && len(c.Source.Command) == 0 {
		return c, t, Fail(CodeUsage, "%s is not a template, and nothing says where its token is", n.Name).
			Hint("the templates are %s; or write, for example, `workshop credential add %s --env TOKEN --host api.example.org`", templateNames(), n.Name)
	}
	if len(c.Source.Command) > 0 && c.Lifetime == 0 {
		c.Lifetime = t.Lifetime
	}
	hosts := n.Hosts
	if len(hosts) == 0 {
		hosts = t.Hosts
	}
	if len(hosts) == 0 {
		return c, t, Fail(CodeUsage, "nothing says which hosts the credential %s may go to", n.Name).
			Hint("name each: `--host api.example.org`, or `--host api.example.org:8443`")
	}
	if n.As != "" {
		if c.As, err = credential.ParseForm(n.As); err != nil {
			return c, t, Fail(CodeUsage, "as: %w", err)
		}
	}
	parse, form := credential.ParseHost, "HOST or HOST:PORT"
	if c.As.Proxy {
		parse, form = credential.ParseProxyHost, "HOST:PORT"
	}
	for _, text := range hosts {
		h, err := parse(text)
		if err != nil {
			return c, t, Fail(CodeUsage, "host: %w", err).Hint("write %s, without scheme, path and wildcard", form)
		}
		c.Hosts = append(c.Hosts, h)
	}
	if n.Authorities != "" {
		c.Authorities = env.ownPath(n.Authorities)
	}
	return c, t, nil
}

// newSource is where the value is, as the caller says it, or else the template.
func (env *Env) newSource(n NewCredential, t credential.Template) (s secretsource.Source, err error) {
	given := 0
	for _, is := range []bool{n.Env != "", n.File != "", n.Keyring != "", len(n.Command) > 0, n.Agent != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return s, Fail(CodeUsage, "a credential has one source: a variable, a file, the keyring, a command or a key of the ssh-agent")
	case n.KnownHosts != "" && n.Agent == "":
		return s, Fail(CodeUsage, "known_hosts is for a key of the ssh-agent").Hint("name the key by its fingerprint, as `ssh-add -l` shows it: --ssh-agent SHA256:…")
	case n.Agent != "":
	case n.Env != "":
		s.Env = n.Env
	case n.File != "":
		s.File = env.ownPath(n.File)
	case n.Keyring == OwnEntry:
		s.Keyring = n.Name
	case n.Keyring != "":
		if !firewall.ValidEndpointName(n.Keyring) {
			return s, Fail(CodeUsage, "%q is not a name of an entry: "+firewall.EndpointNameForm, n.Keyring)
		}
		s.Keyring = n.Keyring
	case len(n.Command) > 0:
		program, err := env.program(n.Command[0])
		if err != nil {
			return s, err
		}
		s.Command = append([]string{program}, n.Command[1:]...)
	default:
		s.Env = t.Env
		if len(t.Command) > 0 {
			if program, err := env.program(t.Command[0]); err == nil {
				s = secretsource.Source{Command: append([]string{program}, t.Command[1:]...)}
			}
		}
	}
	return s, nil
}

// ownPath makes a path of the command line absolute.
func (env *Env) ownPath(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && env.Home != "" {
		return filepath.Join(env.Home, rest)
	}
	return env.Abs(path)
}

// program finds a program once, so that PATH doesn't say later which one it is. One of the
// project may be what a worker wrote, and would run with what the user may do.
func (env *Env) program(name string) (string, error) {
	path := name
	if filepath.Base(name) != name {
		path = env.ownPath(name)
	}
	found, err := exec.LookPath(path)
	if err == nil && !filepath.IsAbs(found) {
		err = exec.ErrDot
	}
	if err != nil {
		return "", Fail(CodeUsage, "the program %q: %w", name, err).Hint("write its absolute path")
	}
	if file, err := env.FindFile(); err == nil && subpath.Within(RealPath(found), RealPath(filepath.Dir(file))) {
		return "", Fail(CodeRefused, "the program %s is in the project, where workers may write", found).Hint("name one that is installed elsewhere")
	}
	return found, nil
}
