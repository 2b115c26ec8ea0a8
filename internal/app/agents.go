package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/sshagent"
	"github.com/llmdo/workshop/internal/trust"
	"github.com/llmdo/workshop/workshop"
)

// agentVariable names the socket of the user's ssh-agent.
const agentVariable = "SSH_AUTH_SOCK"

// Bounds of what is asked of the user's ssh-agent, and read of known_hosts.
const (
	agentDial     = 5 * time.Second
	maxKnownHosts = 4 << 20 // bytes
)

// agentLines are the lines of agents of all workers, with what a user agrees to. Keys are
// found later.
func agentLines(ready *Project) (out []broker.Agent) {
	for i := range ready.Workshop.Workers {
		w := &ready.Workshop.Workers[i]
		for _, a := range w.Container.Network.Agents {
			x := broker.Agent{
				Worker: w.Name, Directory: compose.DialInPath(*ready.Compiled.Facts, w.Name),
				Credential: a.Credential, Namespaces: a.Namespaces, Consent: w.Name + " " + a.String(),
			}
			for _, h := range a.Hosts {
				x.Hosts = append(x.Hosts, broker.AgentHost(h))
			}
			out = append(out, x)
		}
	}
	return out
}

// plainRuntimes are the OCI runtimes whose workers have a socket of this machine. Another,
// such as gVisor's, connects to none.
var plainRuntimes = []string{"", "runc", "crun", "io.containerd.runc.v2"}

// reachAgents refuses agents where their workers couldn't reach one.
func reachAgents(agents []broker.Agent, e engine.Info, contained bool, ready *Project) error {
	if len(agents) == 0 {
		return nil
	}
	runtime := ready.Workshop.Container.Runtime.V
	if runtime == "" {
		runtime = e.DefaultRuntime
	}
	switch {
	case !contained:
		return Fail(CodeRefused, "nothing was started: the workshop's agents need containers, and on this engine tools run as you").
			Hint("use --isolation docker or namespace, or remove `agents`")
	case !slices.Contains(plainRuntimes, runtime):
		return Fail(CodeRefused, "nothing was started: workers of the runtime %s reach no socket of this machine, as agents need", Printable(runtime)).
			Hint("remove `runtime`, or `agents`")
	case agents[0].Directory == "":
		return Fail(CodeRefused, "nothing was started: there is no directory for the sockets of agents").Hint("set XDG_RUNTIME_DIR to your own directory on a tmpfs")
	}
	return nil
}

// checkAgents says which lines of agents can't have their key, and finds the others'.
func (c *creds) checkAgents(ctx context.Context, env *Env, ready *Project, f *Failure, add func(string)) {
	if len(c.agents) == 0 {
		return
	}
	file := env.Shown(env.CredentialsFile())
	found := map[string][]byte{}
	for i := range c.agents {
		a := &c.agents[i]
		x, known := c.byName[a.Credential]
		switch {
		case !known:
			add(fmt.Sprintf("the agents of %s need the credential %s, which %s doesn't have", a.Worker, a.Credential, file))
			f.Hint("%s", addKey(a))
			continue
		case x.Agent == "":
			add(fmt.Sprintf("%s:%d: the credential %s is not a key of your ssh-agent, as the agents of %s need", file, x.Line, x.Name, a.Worker))
			f.Hint("write `ssh_agent: \"SHA256:…\"` there, or take another name for the key")
			continue
		}
		for _, h := range a.Hosts {
			host := workshop.AgentHost(h)
			if !x.Allowed(h.Name, h.Port) {
				add(fmt.Sprintf("%s:%d: the key %s may not log in at %s, as the agents of %s want it", file, x.Line, x.Name, host, a.Worker))
				f.Hint("only if you mean it, add %q to its `hosts`", host)
				continue
			}
			keys, err := knownKeys(x, h)
			if err != nil {
				add(fmt.Sprintf("%s:%d: the key %s: %s", file, x.Line, x.Name, firstLine(err)))
				f.Hint("log in there once yourself, and compare the key of the host that ssh shows")
			} else if len(keys) == 0 {
				add(fmt.Sprintf("%s has no key of %s, by which a log-in is known to be at that host", env.Shown(x.KnownHosts), host))
				f.Hint("log in there once yourself, and compare the key of the host that ssh shows: `ssh -p %d git@%s`", h.Port, h.Name)
			}
		}
		if found[x.Agent] == nil {
			blob, err := env.agentKey(ctx, ready, x)
			if err != nil {
				add(fmt.Sprintf("the key %s (%s): %s", x.Name, x.Agent, firstLine(err)))
				f.Hint("%s", agentHint(err))
				continue
			}
			found[x.Agent] = blob
		}
		a.Key = found[x.Agent]
	}
}

// agentKey returns the public key of a credential: the user's agent must have it, or the
// project's broker, where this command has no agent.
func (env *Env) agentKey(ctx context.Context, ready *Project, c credential.Credential) ([]byte, error) {
	if env.Getenv(agentVariable) == "" {
		a, err := broker.Call(ctx, brokerSocket(ready.Compiled.Facts.RuntimeDir), broker.Request{Op: broker.OpStatus})
		for _, x := range a.Agents {
			if err == nil && sshagent.Fingerprint(x.Key) == c.Agent {
				return x.Key, nil
			}
		}
	}
	return env.agentHas(c.Agent)
}

const hintAgent = "start an agent with the key, and run this again in its shell: `eval $(ssh-agent)`, `ssh-add`; `ssh-add -l` shows its keys"

func dialAgent(socket string) (net.Conn, error) {
	return net.DialTimeout("unix", socket, agentDial)
}

// knownKeys are those of a host, by the user's file.
func knownKeys(c credential.Credential, h broker.AgentHost) ([][]byte, error) {
	if c.KnownHosts == "" {
		return nil, errors.New("it has no known_hosts, and there is no home directory")
	}
	text, err := boundedfile.Read(c.KnownHosts, maxKnownHosts)
	if err != nil {
		return nil, err
	}
	return sshagent.KnownKeys(text, h.Name, h.Port), nil
}

// agentKeys are the keys that workers may have signed by now, by their directories: what
// the user's file has, what they agreed to, and where the hosts are known.
func (env *Env) agentKeys(u broker.Use) (map[string][]sshagent.Key, error) {
	if len(u.Agents) == 0 {
		return nil, nil
	}
	all, agreed, err := env.mayUse(u)
	if err != nil {
		return nil, err
	}
	out := map[string][]sshagent.Key{}
	for _, a := range u.Agents {
		at := slices.IndexFunc(all, func(x credential.Credential) bool { return x.Name == a.Credential && x.Agent != "" })
		if at < 0 || a.Directory == "" || sshagent.Fingerprint(a.Key) != all[at].Agent || !slices.Contains(agreed, trust.Credential{Name: a.Credential, Line: a.Consent}) {
			continue
		}
		k := sshagent.Key{Name: a.Credential, Blob: a.Key, Namespaces: a.Namespaces}
		for _, h := range a.Hosts {
			if !all[at].Allowed(h.Name, h.Port) {
				continue
			}
			if known, err := knownKeys(all[at], h); err == nil && len(known) > 0 {
				k.Hosts = append(k.Hosts, sshagent.Host{Name: h.Name, Port: h.Port, Keys: known})
			}
		}
		out[a.Directory] = sshagent.Join(out[a.Directory], k)
	}
	return out, nil
}

// sayAgents says what workers have of the user's ssh-agent, and which have nothing.
func (env *Env) sayAgents(agents []broker.Agent, now []broker.AgentStatus) {
	for _, a := range agents {
		if slices.ContainsFunc(now, func(s broker.AgentStatus) bool { return s.Directory == a.Directory && s.Credential == a.Credential }) {
			env.detail("agents: %s", Printable(a.Consent))
			continue
		}
		env.warn("the worker %s doesn't have the key %s: the broker's log says why", a.Worker, a.Credential)
	}
}
