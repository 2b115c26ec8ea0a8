package app

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
)

// credentialsText is the user's file as it was read.
type credentialsText struct {
	path, shown string
	text        []byte // nil: there is no file
	all         []credential.Credential
}

// readCredentials reads the user's file. What is wrong with it is an event.
func (env *Env) readCredentials() (*credentialsText, error) {
	f := &credentialsText{path: env.CredentialsFile()}
	if f.path == "" {
		return nil, Fail(CodeUsage, "there is no home directory to have credentials in").Hint("set HOME or XDG_CONFIG_HOME")
	}
	f.shown = env.Shown(f.path)
	var err error
	if f.text, err = credential.Load(f.path); err != nil {
		return nil, Fail(CodeRefused, "credentials: %w", err)
	}
	var list diag.List
	if f.all, list = credential.Parse(f.shown, f.text, env.Home); len(list) > 0 {
		env.event(Event{Kind: Problems, Diagnostics: list, Sources: map[string][]byte{f.shown: f.text}})
		return nil, Fail(CodeUsage, "%s has %s, so none of its credentials can be used", f.shown, Count(len(list), "error")).
			Hint("correct it by hand; it was not changed")
	}
	return f, nil
}

// named returns a credential of the file.
func (f *credentialsText) named(name string) (credential.Credential, error) {
	if i := slices.IndexFunc(f.all, func(c credential.Credential) bool { return c.Name == name }); i >= 0 {
		return f.all[i], nil
	}
	fail := Fail(CodeFailed, "there is no credential %q in %s", name, f.shown)
	if near := Nearest(name, f.names()); near != "" {
		return credential.Credential{}, fail.Hint("did you mean %q?", near)
	}
	return credential.Credential{}, fail.Hint("`workshop credential list` lists them, `workshop credential add` adds one")
}

func (f *credentialsText) names() (names []string) {
	for _, c := range f.all {
		names = append(names, c.Name)
	}
	return names
}

// place is FILE:LINE of a credential.
func (f *credentialsText) place(c credential.Credential) string {
	return fmt.Sprintf("%s:%d", f.shown, c.Line)
}

// write replaces the file, for this user alone, unless it isn't any more what was read.
func (f *credentialsText) write(text []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	now, err := credential.Load(f.path)
	if err != nil || (now == nil) != (f.text == nil) || !bytes.Equal(now, f.text) {
		return errors.Join(err, Fail(CodeFailed, "%s was changed by another program; nothing was written", f.shown).Hint("run it again"))
	}
	return atomicfile.Write(f.path, text, 0o600)
}

// unedited says why the file isn't edited.
func (f *credentialsText) unedited(err error) error {
	return Fail(CodeFailed, "%s: %w; nothing was written", f.shown, err)
}

// CredentialInfo is one of the user's credentials. No value is ever part of it.
type CredentialInfo struct {
	Name   string   `json:"name"`
	Source string   `json:"source"` // "env NAME", "file PATH", "keyring ENTRY", "command PROGRAM" or "ssh_agent SHA256:…"
	Hosts  []string `json:"hosts"`
	As     string   `json:"as"`            // bearer, github, proxy, header:NAME, basic:USER; ssh of an ssh_agent
	TTL    string   `json:"ttl,omitempty"` // how long a value is good for; empty: until it is refused
	CA     string   `json:"ca,omitempty"`
	Line   int      `json:"line"` // in the file
}

// Credentials are the user's, by their names, and the file that has them. No source is
// read.
func (env *Env) Credentials() (all []CredentialInfo, file string, err error) {
	f, err := env.readCredentials()
	if err != nil {
		return nil, "", err
	}
	for _, c := range f.all {
		all = append(all, credentialInfo(c))
	}
	return all, f.shown, nil
}

// CredentialNames are those of the file, for completion; none where it can't be read.
func (env *Env) CredentialNames() []string {
	all, _, err := credential.Read(env.CredentialsFile(), env.Home)
	if err != nil {
		return nil
	}
	return (&credentialsText{all: all}).names()
}

// hostsText is "a.example and b.example:8443".
func hostsText(c credential.Credential) string {
	return WorkersText(c.HostTexts())
}

// templateNames are those of credential's templates.
func templateNames() string {
	var names []string
	for _, t := range credential.Templates() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}
