//go:build linux

package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// Git finds an endpoint that has `git` by itself, whichever address of the host it is given; it
// reads and pushes what the line has, and says what the line has where it hasn't.
func TestEndpointGit(t *testing.T) {
	needs(t, "git")
	s := scenario.New(t, "tools", "git clones and pushes a branch through its endpoint without any setting; a refused push reaches no host, and names the branches that are open")
	host, err := testnet.NewRepositories(t.TempDir(), "acme/app", "acme/lib", "acme/other")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Internet.Site(testnet.GitHost, host))
	s.Env = append(s.Env, "SSL_CERT_FILE="+filepath.Join(s.Dir, "ca.pem"))
	edit(s, "        - allowed.example.org   # nothing that a tool needs\n",
		"        - {host: "+testnet.GitHost+", at: git, git: {read: [acme/lib], push: {acme/app: [\"agent/*\"]}}}\n")
	s.Up()
	for _, x := range []struct {
		name, command string
		code          int
		want          string
		pushes        bool
	}{
		{"push to an empty repository", "cd /tmp && git clone https://" + testnet.GitHost + "/acme/app && cd app && git commit --allow-empty -m x && git push origin HEAD:agent/x", 0, "[new branch]", true},
		{"clone by the address of ssh", "cd /tmp && git clone git@" + testnet.GitHost + ":acme/app.git by-ssh && cd by-ssh && git log --oneline origin/agent/x", 0, " x\n", false},
		{"version 0", "cd /tmp && git -c protocol.version=0 clone --branch agent/x ssh://git@" + testnet.GitHost + "/acme/app zero", 0, "", false},
		{"push main", "cd /tmp/app && git push origin HEAD:main", 1, "push: agent/*", false},
		{"push a tag and a branch", "cd /tmp/app && git push origin HEAD:agent/y HEAD:refs/tags/v1", 1, "not allowed to be pushed", false},
		{"delete", "cd /tmp/app && git push origin --delete agent/x", 1, "not allowed to be deleted", false},
		{"push what is read", "cd /tmp/app && git push https://" + testnet.GitHost + "/acme/lib HEAD:agent/x", 128, "git: read acme/lib", false},
		{"another repository", "cd /tmp && git clone https://" + testnet.GitHost + "/acme/other", 128, "remote: workshop: GET /acme/other/info/refs is not allowed", false},
		{"the policy", "curl -sS http://127.0.0.1:536/policy", 0, "git: push acme/app: agent/*", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			host.Journal()
			d := s.Run("exec", "builder", "--", "sh", "-c", "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@example.org; "+x.command)
			if d.Code != x.code || !strings.Contains(d.Out+d.Err, x.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s%s", d.Code, x.code, x.want, d.Out, d.Err)
			}
			journal := host.Journal()
			if pushed := slices.ContainsFunc(journal, func(r string) bool { return strings.HasPrefix(r, "POST") && strings.HasSuffix(r, "receive-pack") }); pushed != x.pushes {
				t.Errorf("the host got %q", journal)
			}
		})
	}
	says(s, s.Expect(0, "firewall", "explain", testnet.GitHost, "--worker", "builder"), "git: push acme/app: agent/*")

	// Which refs are open changes live.
	edit(s, "agent/*", "main")
	says(s, s.Expect(0, "firewall", "reload"), "reloaded")
	s.Expect(0, "exec", "builder", "--", "sh", "-c", "cd /tmp/app && git push origin HEAD:main")
	s.Expect(1, "exec", "builder", "--", "sh", "-c", "cd /tmp/app && git push origin HEAD:agent/z")
}
