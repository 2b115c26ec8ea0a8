package compose

import (
	"path"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/workshop"
)

// What the broker of credentials puts into the dial-in directory of a worker with agents.
const (
	AgentSocket = "agent"       // the user's ssh-agent, for the worker's lines
	KnownHosts  = "known_hosts" // the keys of the hosts of its lines
	SigningKey  = "signing.pub" // the key that commits are signed by
	// GitNamespace is that of git's signatures.
	GitNamespace = "git"
)

// agentEnv leads programs to a worker's agents.
func agentEnv(e types.MappingWithEquals, agents []workshop.Agent) {
	if len(agents) == 0 {
		return
	}
	e["SSH_AUTH_SOCK"] = ptr(path.Join(DialInDir, AgentSocket))
	if slices.ContainsFunc(agents, func(a workshop.Agent) bool { return len(a.Hosts) > 0 }) {
		e["GIT_SSH_COMMAND"] = ptr("ssh -o UserKnownHostsFile=" + path.Join(DialInDir, KnownHosts) + " -o StrictHostKeyChecking=yes")
	}
}

// agentGit has git sign by a worker's agents.
func agentGit(agents []workshop.Agent) []gitSetting {
	if !slices.ContainsFunc(agents, func(a workshop.Agent) bool { return slices.Contains(a.Namespaces, GitNamespace) }) {
		return nil
	}
	return []gitSetting{{"gpg.format", "ssh"}, {"user.signingkey", path.Join(DialInDir, SigningKey)}}
}
