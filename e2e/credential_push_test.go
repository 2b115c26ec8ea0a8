//go:build linux

package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// B33, attack 47: with `use: {push: ask}` a push reaches its host when the user's program said
// yes to its refs, and not before.
func TestB33_AskPush(t *testing.T) {
	needs(t, "git")
	s := scenario.New(t, "tools", "a push with a credential that asks waits for the user's approvals_command, which sees its refs; without one it is refused at once")
	name := s.Project
	host, err := testnet.NewRepositories(t.TempDir(), "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Internet.Site(testnet.GitHost, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		host.ServeHTTP(w, r)
	})))
	dir := s.TempDir()
	token := userFile(t, dir, "token", canary+"\n")
	flags := []string{"--credentials", userFile(t, dir, "credentials.yaml", name+": {file: "+token+", hosts: ["+testnet.GitHost+"], use: {push: ask}}\n")}
	s.VerifyTestInternet()
	edit(s, "        - allowed.example.org   # nothing that a tool needs\n",
		"        - {host: "+testnet.GitHost+", at: git, credential: "+name+", git: {push: {acme/app: [\"agent/*\"]}}}\n")
	says(s, agreed(s, flags), "pushes are refused", "approvals_command or approvals_socket")
	pushed := func() bool {
		for _, r := range host.Journal() {
			if strings.HasPrefix(r, "POST") && strings.HasSuffix(r, "receive-pack") {
				return true
			}
		}
		return false
	}
	push := func(code int, ref, want string) {
		t.Helper()
		d := s.Run("exec", "builder", "--", "sh", "-c", "cd /tmp/app && git push origin HEAD:"+ref)
		if d.Code != code || !strings.Contains(d.Out+d.Err, want) || pushed() != (code == 0) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s%s", ref, d.Code, code, want, d.Out, d.Err)
		}
	}
	s.Expect(0, "exec", "builder", "--", "sh", "-c", "cd /tmp && git clone -q https://"+testnet.GitHost+"/acme/app && cd app && git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m x")
	push(1, "agent/x", "approvals_command or approvals_socket")

	// What a worker could write doesn't answer for the user.
	s.Env = append(s.Env, "WORKSHOP_APPROVALS_COMMAND="+filepath.Join(s.Dir, "approve"))
	says(s, s.Expect(4, append([]string{"up"}, flags...)...), "approve, approvals_command, is in the project")

	asked := filepath.Join(dir, "asked")
	program := userFile(t, dir, "approve", "#!/bin/sh\ncat >> "+asked+"\ncase $(tail -n 1 "+asked+") in *refs/heads/agent/x*) echo '{\"answer\":\"once\"}';; *) echo '{\"answer\":\"no\"}';; esac\n")
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Env = append(s.Env, "WORKSHOP_APPROVALS_COMMAND="+program)
	s.Up(flags...)
	push(0, "agent/x", "[new branch]")
	push(1, "agent/y", "a person was asked and said no")
	push(1, "agent/y", "just didn't agree")
	push(1, "main", "not allowed to be pushed")
	text, err := os.ReadFile(asked)
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.Contains(string(text), `"worker":"builder"`) || !strings.Contains(string(text), "refs/heads/agent/x: new, ") {
		t.Errorf("the program got %s, %v", text, err)
	}
}
