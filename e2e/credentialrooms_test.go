//go:build linux

package e2e

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// B33, B34: one credential in two rooms is added to what each worker's own lines have, and to
// nothing that only the other's have (attack 5).
func TestB34_Rooms(t *testing.T) {
	needs(t, "git")
	s := scenario.New(t, "rooms", "two workers in rooms of their own have one credential, and each the refs and requests of its own lines alone")
	s.VerifyTestInternet()
	repositories, err := testnet.NewRepositories(t.TempDir(), "acme/app")
	if err != nil {
		t.Fatal(err)
	}
	value := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+canary))
	host := &private{header: "Authorization", value: value, next: repositories}
	t.Cleanup(s.Internet.Site(testnet.GitHost, host))
	api := &private{header: "Authorization", value: value, next: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	t.Cleanup(s.Internet.Site("allowed.example.org", api))

	name, dir := s.Project, s.TempDir()
	token := userFile(t, dir, "token", canary+"\n")
	file := userFile(t, dir, "credentials.yaml", name+": {file: "+token+", hosts: ["+testnet.GitHost+", allowed.example.org], as: {basic: me}}\n")
	lines := func(refs, paths string) string {
		return "{host: " + testnet.GitHost + ", at: git, credential: " + name + ", git: {push: {acme/app: [\"" + refs + "\"]}}}, " +
			"{host: allowed.example.org, at: api, credential: " + name + ", requests: [\"GET,HEAD " + paths + "\"]}"
	}
	worker := func(name string) string {
		return "    - {name: " + name + ", container: {network: {allow: [" + lines("agent/"+name+"/*", "/repos/"+name+"/**") + "], room: own}}}\n"
	}
	edit(s, "allow: [allowed.example.org, ssh.example.org:22],", "allow: ["+lines("agent/**", "/repos/**")+"],")
	edit(s, "    - first\n", worker("first"))
	edit(s, "    - second\n", worker("second"))
	edit(s, "    - name: third\n      container: {network: {allow: [allowed.example.org], room: own}}\n", "")
	agreed(s, []string{"--credentials", file})

	push := func(worker, ref string) scenario.Done {
		return s.Run("exec", worker, "--", "sh", "-c", "cd /tmp && { [ -e app ] || git clone -q https://"+testnet.GitHost+"/acme/app; } && cd app && "+
			"git -c user.name=t -c user.email=t@example.org commit -q --allow-empty -m x && git push origin HEAD:"+ref)
	}
	pushed := func(seen []string) bool {
		return slices.ContainsFunc(seen, func(r string) bool { return strings.HasPrefix(r, "POST /acme/app/git-receive-pack ") })
	}
	for _, x := range [][2]string{{"first", "second"}, {"second", "first"}} {
		me, other := x[0], x[1]
		host.take()
		if d := push(me, "agent/"+me+"/x"); d.Code != 0 {
			t.Errorf("%s: exit code %d:\n%s%s", me, d.Code, d.Out, d.Err)
		}
		seen := host.take()
		if !pushed(seen) {
			t.Errorf("%s: the host got %q", me, seen)
		}
		for _, r := range seen {
			if !strings.HasSuffix(r, " Authorization: "+value) {
				t.Errorf("%s: the host got %q", me, r)
			}
		}
		d := push(me, "agent/"+other+"/y")
		if d.Code != 1 || !strings.Contains(d.Err, "push: agent/"+me+"/*") || strings.Contains(d.Err, "agent/"+other+"/*") {
			t.Errorf("%s pushes the other's ref: exit code %d:\n%s%s", me, d.Code, d.Out, d.Err)
		}
		if seen := host.take(); pushed(seen) {
			t.Errorf("%s: of a refused push the host got %q", me, seen)
		}

		api.take()
		s.Sees(me, "http http://127.0.0.1:600/repos/"+other+"/x -> 403", "http http://127.0.0.1:600/repos/"+me+"/x -> 200")
		if got, want := api.take(), []string{"GET /repos/" + me + "/x Authorization: " + value}; !slices.Equal(got, want) {
			t.Errorf("%s: the host got %q, want %q", me, got, want)
		}
	}
}
