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
		"tunnel 127.0.0.1:536 allowed.example.org:443 -> 403", "lookup allowed.example.org -> NXDOMAIN", "bind tcp 127.0.0.1:601 -> EACCES")
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
