package workshop

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
)

// What loads and is probably not meant so.
func TestWarningsAboutTheNetwork(t *testing.T) {
	const head = "workshop:\n  name: w\n  container:\n    image: i:1\n    network: {mode: %}\n  workers:\n    - "
	files := map[string]string{"workers/a.md": plainWorker}
	for _, tt := range []struct {
		name, network, worker string
		want                  []string
	}{
		{"nothing", "restricted, allow: [a.example.org]", "a", nil},
		{"a resolver by its name (D8)", "restricted, allow: [dns.google]", "a", []string{"5: dns.google is a public resolver over HTTPS: names asked there are not checked"}},
		{"with a port, and by a variable", `restricted, allow: ["cloudflare-dns.com:443", {host: "${R:-dns.quad9.net}"}]`, "a", []string{
			"5: cloudflare-dns.com is a public resolver over HTTPS: names asked there are not checked", "5: dns.quad9.net is a public resolver over HTTPS: names asked there are not checked"}},
		{"a wildcard opens none, and a deny closes one", `restricted, allow: ["**.cloudflare-dns.com"], deny: [dns.google]`, "a", nil},
		{"single labels", `restricted, allow: [db, "redis:6379", {host: "${H:-cache}", port: [80, 81]}]`, "a", []string{
			"5: db is a single label, which only a resolver of the local network can know",
			"5: redis is a single label, which only a resolver of the local network can know",
			"5: cache is a single label, which only a resolver of the local network can know"}},
		{"single labels that are meant, denied, or reported otherwise", "restricted, allow: [{host: nas, private: true}, nas.local, instance-data], deny: [db]", "a",
			[]string{"5: instance-data can't be reached: it is the cloud's metadata service, which stays closed (B26)"}},
		{"a budget next to a line without one", "restricted, allow: [a.example.org, {host: a.example.org, port: 443, upload: 5M/h}]", "a",
			[]string{"5: the budget for a.example.org may bound nothing: another line allows the same without one [5]"}},
		{"a budget next to a preset", "restricted, allow: [{host: registry.npmjs.org, upload: 5M/h}, preset: npm]", "a",
			[]string{"5: the budget for registry.npmjs.org may bound nothing: another line allows the same without one [5]"}},
		{"a budget on another port, or below a wildcard", `restricted, allow: ["**.example.org", "a.example.org:22", {host: a.example.org, upload: 5M/h}]`, "a", nil},
		{"expose without host", "restricted", "{name: a, container: {ports: [{target: 8080, expose_beyond_host: true}]}}",
			[]string{"7: expose_beyond_host has no effect without host: the port is published on 127.0.0.1"}},
		{"expose with host", "restricted", "{name: a, container: {ports: [{target: 8080, host: 0.0.0.0, expose_beyond_host: true}]}}", nil},
		{"expose: false", "restricted", "{name: a, container: {ports: [{target: 8080, expose_beyond_host: false}]}}", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, diags := Load(t.Context(), project(strings.Replace(head, "%", tt.network, 1)+tt.worker+"\n", files), "workshop.yaml", Options{})
			if diff := cmp.Diff(tt.want, places(diags)); w == nil || diff != "" || diags.Count(diag.Error) > 0 {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
