//go:build linux

package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// private is a host that answers 401 to all that come without its header, and keeps what it
// was sent.
type private struct {
	header, value string
	next          http.Handler

	mu   sync.Mutex
	seen []string // "METHOD PATH" and what a request has of the headers below
}

// carriers are headers that tools put tokens into.
var carriers = []string{"Authorization", "Cookie", "Private-Token", "X-Api-Key"}

func (p *private) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line := r.Method + " " + r.URL.EscapedPath()
	for _, name := range carriers {
		for _, v := range r.Header[name] {
			line += " " + name + ": " + v
		}
	}
	p.mu.Lock()
	p.seen = append(p.seen, line)
	p.mu.Unlock()
	if p.header != "" && !slices.Equal(r.Header[p.header], []string{p.value}) {
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	p.next.ServeHTTP(w, r)
}

// take returns what came since the last call.
func (p *private) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.seen = nil }()
	return p.seen
}

// only checks that each request had the credential and nothing else, and that there were some.
func (p *private) only(t *testing.T) {
	t.Helper()
	seen := p.take()
	if len(seen) == 0 {
		t.Error("the host got no request")
	}
	for _, line := range seen {
		if _, got, _ := strings.Cut(line[strings.IndexByte(line, ' ')+1:], " "); got != p.header+": "+p.value {
			t.Errorf("the host got %q", line)
		}
	}
}

// toolHosts are the hosts of TestB32_CredentialTools, each with an endpoint of its own: what
// the user's file says of it, and the rest of its line in workshop.yaml.
var toolHosts = []struct{ at, host, as, line string }{
	{"npm", testnet.NPMHost, "bearer", `requests: ["GET,HEAD *"], encoded_slash: true`},
	{"pypi", testnet.PyPIHost, "{basic: __token__}", `requests: ["GET,HEAD *"]`},
	{"foreign", "foreign.example.org", "bearer", `requests: ["GET,HEAD *"]`},
	{"go", testnet.GoHost, "bearer", `requests: ["GET *"]`},
	{"anthropic", "models.example.org", "{header: x-api-key}", `requests: ["POST /v1/messages", "POST /v1/messages/count_tokens"]`},
	{"registry", "registry.example.org", "bearer", `requests: ["GET,HEAD /v2/acme/**", "GET /v2/"]`},
	{"cargo", "crates.example.org", "bearer", `requests: ["GET,HEAD *"]`},
	{"huggingface", "hub.example.org", "bearer", `requests: ["GET,HEAD /acme/model/resolve/**"]`},
}

// credentialTools is the workshop tools with an endpoint for each of toolHosts.
func credentialTools(t *testing.T) (s *scenario.Scenario, hosts map[string]*private) {
	s = scenario.New(t, "tools", "npm, pip, go, cargo, curl and programs of models and of registries use private hosts with a credential that the guard adds, and have none themselves")
	s.VerifyTestInternet()
	dir := s.TempDir()
	write := func(name, text string) string { return userFile(t, dir, name, text) }
	hosts = map[string]*private{}
	var lines, entries strings.Builder
	for _, x := range toolHosts {
		p := &private{header: "Authorization", value: "Bearer canary-" + x.at, next: s.Internet.Served(x.host)}
		switch x.at {
		case "pypi":
			p.value = "Basic " + base64.StdEncoding.EncodeToString([]byte("__token__:canary-pypi"))
		case "anthropic":
			p.header, p.value = "X-Api-Key", "canary-anthropic"
		}
		hosts[x.at] = p
		t.Cleanup(s.Internet.Site(x.host, p))
		fmt.Fprintf(&lines, "        - {host: %s, at: %s, credential: %s, %s}\n", x.host, x.at, x.at, x.line)
		ca := ""
		if x.at == "pypi" || x.at == "foreign" {
			pem := s.Internet.Authority(t, x.host)
			if x.at == "pypi" {
				ca = ", ca: " + write("acme-ca.pem", string(pem))
			}
		}
		fmt.Fprintf(&entries, "%s: {file: %s, hosts: [%s], as: %s%s}\n", x.at, write(x.at, "canary-"+x.at+"\n"), x.host, x.as, ca)
	}
	file := write("credentials.yaml", entries.String())
	edit(s, "        - allowed.example.org   # nothing that a tool needs\n", lines.String()+"        - cdn.example.org\n")
	edit(s, "      NPM_CONFIG_CAFILE: /ca.pem\n      NPM_CONFIG_REGISTRY: https://npm.example.org\n", "      GONOSUMDB: example.org/*\n")
	addCargo(s)
	edit(s, "      PIP_CERT: /ca.pem\n      PIP_INDEX_URL: https://pypi.example.org/simple\n", "")
	says(s, agreed(s, []string{"--credentials", file}), "workers may call models at models.example.org with your credentials (anthropic), and no budget of a run bounds what that costs")
	return s, hosts
}

// B32, B33: the tools that people use work at private hosts without a token of their own:
// their hosts get the credential of the line with each request, and nothing else gets it.
func TestB32_CredentialTools(t *testing.T) {
	s, hosts := credentialTools(t)
	sh := func(t *testing.T, code int, command string, want ...string) string {
		t.Helper()
		d := s.Run("exec", "builder", "--", "sh", "-c", command)
		for _, text := range want {
			if !strings.Contains(d.Out+d.Err, text) {
				code = -1
			}
		}
		if d.Code != code || strings.Contains(d.Out+d.Err, "canary") {
			t.Fatalf("%s: exit code %d, want %q and no canary:\n%s%s", command, d.Code, want, d.Out, d.Err)
		}
		return d.Out
	}

	t.Run("npm ci", func(t *testing.T) {
		needs(t, "npm", "node")
		sh(t, 0, npmProject()+`npm ci && node -p "require('@acme/greeting') + require('greeting')"`, testnet.Greeting+testnet.Greeting)
		hosts["npm"].only(t)
	})

	// Its certificate is by an authority that the user's file names.
	t.Run("pip", func(t *testing.T) {
		needs(t, "python3", "pip3")
		index, wheel := hosts["pypi"].next, s.Internet.Served(testnet.FilesHost)
		hosts["pypi"].next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name, ok := strings.CutPrefix(r.URL.Path, "/files/")
			switch {
			case ok:
				r.URL.Path = "/" + name
				wheel.ServeHTTP(w, r)
			case r.URL.Path == "/simple/greeting/":
				fmt.Fprintf(w, "<a href=\"../../files/%s\">%[1]s</a>\n", testnet.Wheel)
			default:
				index.ServeHTTP(w, r)
			}
		})
		sh(t, 0, "cd /tmp && python3 -m pip install --retries 1 --no-cache-dir --target py greeting && PYTHONPATH=py python3 -c 'import greeting; print(greeting.text)'", testnet.Greeting)
		hosts["pypi"].only(t)
	})
	t.Run("an authority that nobody named", func(t *testing.T) {
		needs(t, "curl")
		sh(t, 0, `curl -sS -w '%{http_code}' "$WORKSHOP_ENDPOINT_FOREIGN/"`, "502", "certificate")
		if got := hosts["foreign"].take(); len(got) > 0 {
			t.Errorf("the host got %q", got)
		}
	})

	t.Run("go get", func(t *testing.T) {
		needs(t, "go")
		sh(t, 0, "mkdir /tmp/g && cd /tmp/g && go mod init acme.example/g && go get "+testnet.GoModule+"@latest && cat $(go list -m -f '{{.Dir}}' "+testnet.GoModule+")/greeting.go", testnet.Greeting)
		hosts["go"].only(t)
	})

	t.Run("cargo", func(t *testing.T) { cargoAsks(t, s, hosts["cargo"]) })

	t.Run("a registry of images", func(t *testing.T) {
		needs(t, "curl")
		hosts["registry"].next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"schemaVersion": 2}`))
		})
		sh(t, 0, `curl -sSf "$WORKSHOP_ENDPOINT_REGISTRY/v2/" "$WORKSHOP_ENDPOINT_REGISTRY/v2/acme/app/manifests/1.0" -H "Authorization: Bearer workshop"`, `"schemaVersion"`)
		hosts["registry"].only(t)
		sh(t, 0, `curl -sS -w '%{http_code}' -X PUT "$WORKSHOP_ENDPOINT_REGISTRY/v2/acme/app/manifests/1.0"`, "403", "GET,HEAD /v2/acme/**")
	})

	// Whoever has a token of its own doesn't act as somebody else with it.
	t.Run("a token of its own", func(t *testing.T) {
		needs(t, "curl")
		for _, header := range []string{"Authorization: Bearer own", "Cookie: session=own", "X-Api-Key: own", "Private-Token: own"} {
			sh(t, 0, `curl -sS -w '%{http_code}' -H "`+header+`" "$WORKSHOP_ENDPOINT_REGISTRY/v2/"`, "400", "has a credential, and the endpoint registry adds the credential registry itself", `the word "workshop"`)
		}
		if got := hosts["registry"].take(); len(got) > 0 {
			t.Errorf("the host got %q", got)
		}
	})

	t.Run("a redirect to another host", func(t *testing.T) {
		needs(t, "curl")
		const weights = "these are weights"
		cdn := &private{next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, weights) })}
		t.Cleanup(s.Internet.Site("cdn.example.org", cdn))
		hosts["huggingface"].next = http.RedirectHandler("https://cdn.example.org/weights", http.StatusFound)
		sh(t, 0, `curl -sSfL -H "Authorization: Bearer $HF_TOKEN" "$HF_ENDPOINT/acme/model/resolve/main/weights.bin"`, weights)
		hosts["huggingface"].only(t)
		if got := cdn.take(); !slices.Equal(got, []string{"GET /weights"}) {
			t.Errorf("the other host got %q", got)
		}
	})

	// The dummies in the worker's environment are no keys (B44).
	t.Run("verify", func(t *testing.T) { s.Expect(0, "verify", "builder") })
	t.Run("a stream of a model", func(t *testing.T) { streams(t, s, hosts["anthropic"]) })
}

// npmProject is commands that make a project with a package of a private scope and another,
// whose lock names the registry's host, as npm writes it.
func npmProject() string {
	manifest := map[string]any{"name": "app", "version": "1.0.0", "dependencies": map[string]string{"greeting": "1.0.0", testnet.NPMScoped: "1.0.0"}}
	packages := map[string]any{"": manifest}
	for _, name := range []string{"greeting", testnet.NPMScoped} {
		packages["node_modules/"+name] = map[string]string{"version": "1.0.0", "resolved": "https://" + testnet.NPMHost + "/" + name + "/-/greeting-1.0.0.tgz"}
	}
	m, _ := json.Marshal(manifest)
	l, _ := json.Marshal(map[string]any{"name": "app", "version": "1.0.0", "lockfileVersion": 3, "packages": packages})
	return fmt.Sprintf("mkdir /tmp/npm && cd /tmp/npm && echo '%s' >package.json && echo '%s' >package-lock.json && ", m, l)
}

// reader asks a model as its tools do, and asks again for each event that it has read: the
// host sends the next one only then. It prints when each came, in milliseconds.
const reader = `
import http.client, json, os, time, urllib.parse
to = urllib.parse.urlsplit(os.environ["ANTHROPIC_BASE_URL"]).netloc
headers = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "anthropic-version": "2023-06-01", "content-type": "application/json"}
def post(path):
    c = http.client.HTTPConnection(to, timeout=20)
    c.request("POST", path, json.dumps({"stream": True}), headers)
    return c.getresponse()
began = time.monotonic()
r = post("/v1/messages")
print("status", r.status, r.getheader("content-type"), round(1000 * (time.monotonic() - began), 1))
while line := r.readline():
    if line.startswith(b"data:"):
        print(line.decode().strip(), round(1000 * (time.monotonic() - began), 1), flush=True)
        post("/v1/messages/count_tokens").read()
`

// streams checks that each event of a stream reaches the worker when it is sent, and not with
// the next one.
func streams(t *testing.T, s *scenario.Scenario, host *private) {
	needs(t, "python3")
	const events = 5
	read := make(chan struct{}, events)
	host.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/messages" {
			read <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range events {
			fmt.Fprintf(w, "event: content_block_delta\ndata: {\"index\": %d}\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-read:
			case <-time.After(10 * time.Second):
				t.Errorf("event %d wasn't read before the next one", i)
				return
			}
		}
	})
	d := s.Expect(0, "exec", "builder", "--", "python3", "-c", reader)
	if !strings.HasPrefix(d.Out, "status 200 text/event-stream ") || strings.Count(d.Out, "data: ") != events {
		t.Errorf("the worker read:\n%s%s", d.Out, d.Err)
	}
	t.Logf("milliseconds at which the head and each event were read:\n%s", d.Out)
	host.only(t)
}
