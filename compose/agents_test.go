package compose

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
)

// TestAgentEnvironment: programs find the agent, git the hosts and the key, beside what the
// file itself has of git's configuration.
func TestAgentEnvironment(t *testing.T) {
	const head = "workshop:\n  name: agents\n  container:\n    image: example:1\n    network:\n      mode: restricted\n      allow: [\"git.example.org:22\"]\n      agents: ["
	const tail = "]\n    env: {ENV}\n  workers: [{name: w, tools: [Bash]}]\n"
	const ssh, sign = "{ssh: work-key, hosts: [git.example.org]}", "{sign: work-key, namespaces: [git]}"
	for _, tt := range []struct {
		name, agents, env string
		want              map[string]string // "": not set
	}{
		{"none", "", "A: b", map[string]string{"SSH_AUTH_SOCK": "", "GIT_SSH_COMMAND": "", "GIT_CONFIG_COUNT": "1"}},
		{"ssh", ssh, "A: b", map[string]string{"SSH_AUTH_SOCK": "/run/workshop/agent", "GIT_CONFIG_COUNT": "1",
			"GIT_SSH_COMMAND": "ssh -o UserKnownHostsFile=/run/workshop/known_hosts -o StrictHostKeyChecking=yes"}},
		{"sign", sign, "A: b", map[string]string{"SSH_AUTH_SOCK": "/run/workshop/agent", "GIT_SSH_COMMAND": "", "GIT_CONFIG_COUNT": "3",
			"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_KEY_1": "gpg.format", "GIT_CONFIG_VALUE_1": "ssh",
			"GIT_CONFIG_KEY_2": "user.signingkey", "GIT_CONFIG_VALUE_2": "/run/workshop/signing.pub"}},
		{"sign for files", "{sign: work-key, namespaces: [file]}", "A: b", map[string]string{"GIT_CONFIG_COUNT": "1"}},
		{"the user's environment", ssh + ", " + sign, `GIT_CONFIG_COUNT: "2", GIT_CONFIG_KEY_0: a.b, GIT_CONFIG_VALUE_0: c, GIT_CONFIG_KEY_1: d.e, GIT_CONFIG_VALUE_1: f, GIT_SSH_COMMAND: my-ssh, SSH_AUTH_SOCK: /mine`,
			map[string]string{"GIT_CONFIG_COUNT": "4", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_KEY_1": "d.e", "GIT_CONFIG_KEY_2": "gpg.format", "GIT_SSH_COMMAND": "my-ssh", "SSH_AUTH_SOCK": "/mine"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.ReplaceAll(head+tt.agents+tail, "{ENV}", "{"+tt.env+"}")
			w, list := workshop.Load(t.Context(), fstest.MapFS{"workshop.yaml": {Data: []byte(text)}}, "workshop.yaml", workshop.Options{})
			if list.HasErrors() {
				t.Fatal(list)
			}
			c := compiled(t, w)
			e := c.Project.Services["w"].Environment
			for name, want := range tt.want {
				got := ""
				if v := e[name]; v != nil {
					got = *v
				}
				if got != want {
					t.Errorf("%s=%q, want %q", name, got, want)
				}
			}
		})
	}
}
