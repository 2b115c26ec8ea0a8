package app

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/sshagent"
	"github.com/llmdo/workshop/workshop"
)

// newKey is a key of the user's ssh-agent, which must have it.
func (env *Env) newKey(n NewCredential) (credential.Credential, error) {
	c := credential.Credential{Name: n.Name, Agent: n.Agent}
	switch {
	case n.Template != "" || n.As != "" || n.Lifetime != 0 || n.Authorities != "":
		return c, Fail(CodeUsage, "a key of the ssh-agent has no value, so a template, a form, a lifetime and authorities are not for it")
	case !sshagent.ValidFingerprint(n.Agent):
		return c, Fail(CodeUsage, "%q is not the fingerprint of a key", clip.Bytes(n.Agent, 80)).Hint("give what `ssh-add -l` shows: --ssh-agent SHA256:…")
	}
	if _, err := env.agentHas(n.Agent); err != nil {
		return c, Fail(CodeFailed, "the key %s: %w", n.Agent, err).Hint("%s", agentHint(err))
	}
	for _, text := range n.Hosts {
		h, err := credential.ParseAgentHost(text)
		if err != nil {
			return c, Fail(CodeUsage, "host: %w", err).Hint("write HOST or HOST:PORT, without user, path and wildcard")
		}
		c.Hosts = append(c.Hosts, h)
	}
	switch {
	case n.KnownHosts != "":
		c.KnownHosts = env.ownPath(n.KnownHosts)
	case env.Home != "":
		c.KnownHosts = filepath.Join(env.Home, ".ssh", "known_hosts")
	}
	return c, nil
}

// agentLinesOf are lines of `agents` in a workshop.yaml that use a key: for each of its
// hosts, and to sign commits.
func agentLinesOf(c credential.Credential) (lines []string) {
	for _, host := range c.HostTexts() {
		lines = append(lines, fmt.Sprintf("- {ssh: %s, hosts: [%q]}", c.Name, host))
	}
	return append(lines, "- {sign: "+c.Name+", namespaces: [git]}")
}

// addKey is what to do where the user's file doesn't have the key of a line.
func addKey(a *broker.Agent) string {
	hosts := ""
	for _, h := range a.Hosts {
		hosts += " --host " + workshop.AgentHost(h).String()
	}
	return fmt.Sprintf("add the key, by its fingerprint that `ssh-add -l` shows: `workshop credential add %s --ssh-agent SHA256:…%s`", a.Credential, hosts)
}

// errAbsent says that the user's agent doesn't have a key.
var errAbsent = errors.New("your ssh-agent doesn't have it")

// maxShownKeys of an agent are named in an error.
const maxShownKeys = 10

// absent is errAbsent with the keys that the agent has.
func absent(keys []sshagent.Public) error {
	if len(keys) == 0 {
		return fmt.Errorf("%w, nor any other key", errAbsent)
	}
	var have []string
	for _, k := range keys[:min(len(keys), maxShownKeys)] {
		have = append(have, keyText(k))
	}
	if more := len(keys) - len(have); more > 0 {
		have = append(have, Count(more, "other"))
	}
	return fmt.Errorf("%w; it has %s", errAbsent, strings.Join(have, ", "))
}

// keyText is a key as ssh-add -l shows it.
func keyText(k sshagent.Public) string {
	return strings.TrimSpace(sshagent.Fingerprint(k.Blob) + " " + clip.Bytes(Printable(k.Comment), 80))
}

// agentHint is what to do where a key isn't found.
func agentHint(err error) string {
	if errors.Is(err, errAbsent) {
		return "`ssh-add FILE` adds a key; `ssh-add -l` shows those of the agent"
	}
	return hintAgent
}

// agentHas returns the public key of a fingerprint, if the user's agent has it.
func (env *Env) agentHas(fingerprint string) ([]byte, error) {
	keys, err := env.agentList()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(keys, func(k sshagent.Public) bool { return sshagent.Fingerprint(k.Blob) == fingerprint })
	if i < 0 {
		return nil, absent(keys)
	}
	return keys[i].Blob, nil
}

// agentList are the keys of the user's agent.
func (env *Env) agentList() ([]sshagent.Public, error) {
	if env.Getenv(agentVariable) == "" {
		return nil, errors.New(agentVariable + " isn't set: there is no ssh-agent")
	}
	conn, err := dialAgent(env.Getenv(agentVariable))
	if err != nil {
		return nil, fmt.Errorf("your ssh-agent doesn't answer: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(agentDial)); err != nil {
		return nil, err
	}
	return sshagent.List(conn)
}

// AgentKeys are the keys of the user's agent with their comments, for completion; none where
// it can't be asked.
func (env *Env) AgentKeys() (out []string) {
	keys, _ := env.agentList()
	for _, k := range keys {
		out = append(out, strings.Replace(keyText(k), " ", "\t", 1))
	}
	return out
}
