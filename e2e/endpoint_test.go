//go:build linux

package e2e

import (
	"encoding/pem"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/workshop"
)

// endpointLine makes allowed.example.org an endpoint of the workshop restricted.
const endpointLine = "{host: allowed.example.org, at: api, requests: [\"GET,HEAD /repos/**\", \"POST /repos/acme/app/pulls\"]}"

func TestB34_Endpoint(t *testing.T) {
	s := scenario.New(t, "restricted", "a host with an endpoint is reached at the endpoint alone, by TLS of the guard, with the requests of its line")
	s.Env = append(s.Env, "SSL_CERT_FILE="+filepath.Join(s.Dir, "ca.pem"))
	edit(s, "- allowed.example.org\n", "- "+endpointLine+"\n")
	s.Up()
	s.Sees("worker", "http http://127.0.0.1:600/repos/acme/app -> 200", "http http://localhost:600/repos/acme/app?page=2 -> 200", "env WORKSHOP_ENDPOINT_API -> http://127.0.0.1:600")
	if n := s.Conns(testnet.Allowed, 443); n == 0 {
		t.Error("the host got no TLS")
	}
	s.Internet.Reset()
	s.Denied("worker",
		scenario.Denial{Probe: "http https://allowed.example.org/repos/acme ca=/ca.pem connect=198.51.100.10:443 -> " + cutOff, Control: "200"},
		scenario.Denial{Probe: "http http://allowed.example.org/repos/acme connect=198.51.100.10:80 -> 403", Control: "200"},
	)
	s.Internet.Reset()
	s.Sees("worker",
		"http http://127.0.0.1:600/user -> 403", "http http://127.0.0.1:600/repos/%2e%2e/user -> 400", "http http://127.0.0.1:600/repos/x?access_token=y -> 400",
		"http http://127.0.0.1:600/repos/x host=evil.example.net -> 400", "http http://allowed.example.org/repos/x proxy=http://127.0.0.1:536 -> 403",
		"tunnel 127.0.0.1:536 allowed.example.org:443 -> 403", "lookup allowed.example.org -> NXDOMAIN")
	if scenario.TheKernel() != workshop.KernelSandboxed { // gVisor gives low ports to everybody
		s.Sees("worker", "bind tcp 127.0.0.1:601 -> EACCES")
	}
	if got := s.Internet.Counts(); len(got.Conns) != 0 {
		t.Errorf("what is refused reached %+v", got.Conns)
	}
	says(s, s.Expect(0, "firewall", "explain", "allowed.example.org", "--worker", "worker"), "http://127.0.0.1:600", "GET,HEAD /repos/**")

	// Requests change live, the set of endpoints doesn't.
	before := lives(s)
	edit(s, "GET,HEAD /repos/**", "GET /user")
	says(s, s.Expect(0, "firewall", "reload"), "reloaded")
	goOn(s, before, "worker", "guard")
	s.Sees("worker", "http http://127.0.0.1:600/user -> 200", "http http://127.0.0.1:600/repos/acme/app -> 403")
	edit(s, "at: api", "at: other")
	d := s.Run("firewall", "reload")
	if d.Code == 0 {
		t.Errorf("reload took another endpoint: %+v", d)
	}
	s.Up()
	s.Sees("worker", "http http://127.0.0.1:600/user -> 200", "env WORKSHOP_ENDPOINT_OTHER -> http://127.0.0.1:600", "env WORKSHOP_ENDPOINT_API -> unset")

	// A host whose certificate nobody here vouches for gets no request.
	server := httptest.NewTLSServer(nil)
	server.Close()
	s.Write("other.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	s.Env = append(s.Env, "SSL_CERT_FILE="+filepath.Join(s.Dir, "other.pem"))
	s.Up()
	s.Internet.Reset()
	s.Sees("worker", "http http://127.0.0.1:600/user -> 502")
	if n := strings.Count(s.Logs("guard"), "certificate"); n == 0 {
		t.Error("no event says that the certificate isn't accepted")
	}
}

// The tools of presets find endpoints of the presets' names by themselves, and what they
// want to write is refused.
func TestEndpointTools(t *testing.T) {
	s := scenario.New(t, "tools", "npm, pip and go use the endpoints of their names without any setting, and npm publish is told which requests there are")
	s.Env = append(s.Env, "SSL_CERT_FILE="+filepath.Join(s.Dir, "ca.pem"))
	edit(s, "        - allowed.example.org   # nothing that a tool needs\n", `        - {host: `+testnet.NPMHost+`, at: npm, requests: ["GET,HEAD *"], encoded_slash: true}
        - {host: `+testnet.PyPIHost+`, at: pypi, requests: ["GET,HEAD /simple/**"]}
        - `+testnet.FilesHost+`
        - {host: `+testnet.GoHost+`, at: go, requests: ["GET /example.org/**"]}
`)
	edit(s, "      NPM_CONFIG_CAFILE: /ca.pem\n      NPM_CONFIG_REGISTRY: https://npm.example.org\n", "      GONOSUMDB: \"*\"\n")
	edit(s, "      PIP_INDEX_URL: https://pypi.example.org/simple\n", "")
	s.Up()
	for _, x := range []struct {
		name    string
		needs   []string
		command string
		code    int
		want    string
	}{
		{"npm", []string{"npm", "node"}, `cd /tmp && npm install greeting && node -p "require('greeting')"`, 0, testnet.Greeting},
		{"npm publish", []string{"npm"}, `mkdir /tmp/p && cd /tmp/p && npm init -y && npm config set //127.0.0.1:601/:_authToken x && npm publish`, 1, "PUT of this path is not allowed at the endpoint npm"},
		{"pip", []string{"python3", "pip3"}, "cd /tmp && python3 -m pip install --retries 1 --no-cache-dir --target py greeting && PYTHONPATH=py python3 -c 'import greeting; print(greeting.text)'", 0, testnet.Greeting},
		{"go", []string{"go"}, "mkdir /tmp/g && cd /tmp/g && go mod init example.org/g && go get " + testnet.GoModule + "@latest && cat $(go list -m -f '{{.Dir}}' " + testnet.GoModule + ")/greeting.go", 0, testnet.Greeting},
	} {
		t.Run(x.name, func(t *testing.T) {
			needs(t, x.needs...)
			d := s.Run("exec", "builder", "--", "sh", "-c", x.command)
			if d.Code != x.code || !strings.Contains(d.Out+d.Err, x.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s%s", d.Code, x.code, x.want, d.Out, d.Err)
			}
		})
	}
}
