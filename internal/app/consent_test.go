package app

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
)

// consentsOf is what a user agrees to for a line of a worker.
func consentsOf(t *testing.T, r firewall.Rule) string {
	t.Helper()
	p := &firewall.Policy{Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"builder"}, Allow: []firewall.Rule{r}}}}
	lines := credentialLines(p)
	if len(lines) != 1 || len(lines[0].Consents) != 1 {
		t.Fatalf("got %v", lines)
	}
	return lines[0].Consents[0]
}

func consentedRule(t *testing.T) firewall.Rule {
	t.Helper()
	host, err := firewall.ParseHostPattern("tickets.example.org")
	if err != nil {
		t.Fatal(err)
	}
	return firewall.Rule{Host: host, Ports: []firewall.PortRange{{First: 443, Last: 443}}, Upload: firewall.Budget{Bytes: 1 << 20, Per: time.Hour},
		Endpoint: firewall.Endpoint{At: "tickets", Port: 600, Requests: consentedRequests(t, "GET /a"), Credential: "tickets"}}
}

func consentedRequests(t *testing.T, texts ...string) (out request.Rules) {
	t.Helper()
	for _, text := range texts {
		r, err := request.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// TestConsentText: whatever widens a line is another text, to which nobody agreed (B33). Each
// field of a line has its change here, or the reason why it changes nothing that is agreed to.
func TestConsentText(t *testing.T) {
	neutral := map[string]string{
		"CIDR": "an endpoint has a host", "Template": "an endpoint has a host, written out", "Value": "as Template",
		"AnyTenant": "for wildcards", "ECH": "not for endpoints", "Preset": "where the line comes from", "Line": "its place", "Source": "its place",
		"Endpoint": "its fields are below", "Endpoint.Port": "of the loopback inside the room",
		"Endpoint.Git": "takes the place of Requests: below",
	}
	other, err := firewall.ParseHostPattern("other.example.org")
	if err != nil {
		t.Fatal(err)
	}
	read, err := request.ParseRepository("acme/app")
	if err != nil {
		t.Fatal(err)
	}
	every, err := request.ParseRepository("**")
	if err != nil {
		t.Fatal(err)
	}
	branch, err := request.ParseRef("agent/*")
	if err != nil {
		t.Fatal(err)
	}
	git := func(g request.Git) func(*firewall.Rule) {
		return func(r *firewall.Rule) { r.Endpoint.Requests, r.Endpoint.Git = nil, g }
	}
	changes := map[string]func(*firewall.Rule){
		"Host": func(r *firewall.Rule) { r.Host = other }, "Ports": func(r *firewall.Rule) { r.Ports = []firewall.PortRange{{First: 8443, Last: 8443}} },
		"Private": func(r *firewall.Rule) { r.Private = true }, "Upload": func(r *firewall.Rule) { r.Upload = firewall.Budget{} },
		"Upload, more": func(r *firewall.Rule) { r.Upload.Bytes *= 2 }, "Endpoint.At": func(r *firewall.Rule) { r.Endpoint.At = "api" },
		"Endpoint.Requests":     func(r *firewall.Rule) { r.Endpoint.Requests = consentedRequests(t, "GET /a", "GET /b") },
		"Requests, methods":     func(r *firewall.Rule) { r.Endpoint.Requests = consentedRequests(t, "GET,POST /a") },
		"Requests, below":       func(r *firewall.Rule) { r.Endpoint.Requests = consentedRequests(t, "GET /a/**") },
		"Endpoint.EncodedSlash": func(r *firewall.Rule) { r.Endpoint.EncodedSlash = true },
		"Endpoint.Credential":   func(r *firewall.Rule) { r.Endpoint.Credential = "other" },
		"git, read":             git(request.Git{Read: []request.Repository{read}}),
		"git, push":             git(request.Git{Push: request.Refs{{Repository: read, Refs: []request.Ref{branch}}}}),
		"git, delete":           git(request.Git{Delete: request.Refs{{Repository: read, Refs: []request.Ref{branch}}}}),
		"git, both":             git(request.Git{Push: request.Refs{{Repository: read, Refs: []request.Ref{branch}}}, Delete: request.Refs{{Repository: read, Refs: []request.Ref{branch}}}}),
		"git, every repository": git(request.Git{Read: []request.Repository{every}, AnyRepository: true}),
	}
	for prefix, of := range map[string]reflect.Type{"": reflect.TypeFor[firewall.Rule](), "Endpoint.": reflect.TypeFor[firewall.Endpoint]()} {
		for f := range of.Fields() {
			if (changes[prefix+f.Name] == nil) == (neutral[prefix+f.Name] == "") {
				t.Errorf("%s%s has neither a change here nor a reason, or both", prefix, f.Name)
			}
		}
	}
	before := consentsOf(t, consentedRule(t))
	seen := map[string]string{before: "the line as it is"}
	for name, change := range changes {
		r := consentedRule(t)
		change(&r)
		text := consentsOf(t, r)
		if was, is := seen[text]; is {
			t.Errorf("%s: the same text as %s: %s", name, was, text)
		}
		seen[text] = name
	}
	moved := consentedRule(t)
	moved.Endpoint.Port, moved.Line, moved.Source, moved.Preset = 700, "other.yaml:9", diag.Source{Template: "x"}, "p"
	if text := consentsOf(t, moved); text != before {
		t.Errorf("a line that moved is another one: %s", text)
	}
}

// TestConsentWorkers: each worker of a room is asked about, so one that joins it is, too.
func TestConsentWorkers(t *testing.T) {
	p := &firewall.Policy{Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"builder", "other"}, Allow: []firewall.Rule{consentedRule(t)}}}}
	got := credentialLines(p)[0].Consents
	if len(got) != 2 || !slices.IsSorted(got) || got[0] != consentsOf(t, consentedRule(t)) || got[0] == got[1] {
		t.Errorf("got %q", got)
	}
}

// TestConsentDigest: nobody finds lines by trying that have the digest of others, to which a
// script agrees: 80 bits of work at least.
func TestConsentDigest(t *testing.T) {
	c := &creds{lines: credentialLines(&firewall.Policy{Rooms: []firewall.RoomPolicy{{Room: "room", Mode: firewall.Restricted, Workers: []string{"builder"}, Allow: []firewall.Rule{consentedRule(t)}}}})}
	state := t.TempDir()
	env := testEnv(&Env{Lookup: func(name string) (string, bool) { return state, name == "XDG_STATE_HOME" }}, nil)
	if err := c.compare(env, state); err != nil {
		t.Fatal(err)
	}
	if len(c.missing) != 1 || len(c.digest) < 160/4 {
		t.Errorf("%d lines, the digest %s", len(c.missing), c.digest)
	}
}
