package guard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
)

const (
	proxyAddr = "127.0.0.1:536"
	// whatIsOpen ends the body of a refusal.
	whatIsOpen = "What is open here: http://127.0.0.1:536/policy\n"
	proxyHead  = " HTTP/1.1\r\nHost: 127.0.0.1:536\r\nConnection: close\r\n\r\n"
)

// TestPolicyOfTheRoom: the explicit proxy says what is open in the room now, and nothing of
// other rooms.
func TestPolicyOfTheRoom(t *testing.T) {
	p := apiPolicy(t)
	second := at(t, "second 601 second.example.org", "GET /a")
	second.Endpoint.Credential = "key"
	p.Rooms[0].Allow = append(p.Rooms[0].Allow, second)
	p.Rooms[0].Deny = []firewall.Rule{rule(t, "gist.example.org:80,443", 7)}
	w := apiWorld(t, p)
	resp, body := w.send(proxyAddr, "GET /policy"+proxyHead)
	const want = `These hosts are open here, and no others:
  **.example.org tcp/22,80,443,8443
  198.51.100.0/24 tcp/443
  allowed.example.org at http://127.0.0.1:600/ by HTTP; it has these requests:
    GET,HEAD /repos/**
    POST /repos/acme/app/pulls
    GET /bytes/*
    GET /stream
  second.example.org at http://127.0.0.1:601/ by HTTP; a credential is added, send none; it has these requests:
    GET /a
Denied, whatever is above:
  gist.example.org tcp/80,443
What is refused stays refused: do not retry, tell the person.
`
	if resp.StatusCode != 200 || body != want {
		t.Errorf("got %v\n%s\nwant\n%s", resp.Status, body, want)
	}
	w.change(control.Request{Op: control.OpChange, Changes: []firewall.Live{{Rule: rule(t, "live.example.net:443", 8)}}})
	resp, body = w.send(proxyAddr, "GET /policy.json"+proxyHead)
	var d struct {
		Room, Mode string
		Workers    []string
		Allow      []struct{ Target, Ports string }
		Endpoints  []struct {
			Name, URL, Host string
			Requests        []string
			Credential      bool
		}
		Deny []struct{ Target string }
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%v %v: %s", err, resp.Header, body)
	}
	got := fmt.Sprint(d)
	if want := "{room restricted [alice bob] [{live.example.net 443} {**.example.org 22,80,443,8443} {198.51.100.0/24 443}] [{api http://127.0.0.1:600/ allowed.example.org [GET,HEAD /repos/** POST /repos/acme/app/pulls GET /bytes/* GET /stream] false} {second http://127.0.0.1:601/ second.example.org [GET /a] true}] [{gist.example.org}]}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for request, status := range map[string]int{
		"POST /policy" + proxyHead: 405, "GET /policy?x" + proxyHead: 400, "GET /other" + proxyHead: 400,
		"GET /policy HTTP/1.1\r\nHost: evil.example.net\r\n\r\n":                        400,
		"GET http://evil.example.net/policy HTTP/1.1\r\nHost: evil.example.net\r\n\r\n": 403,
	} {
		if resp, body := w.send(proxyAddr, request); resp.StatusCode != status {
			t.Errorf("%q: %v %s", request, resp.Status, body)
		}
	}
	// A room whose policy is long says how much of it is left out (B60).
	p = w.policy
	p.Rooms = slices.Clone(p.Rooms)
	for i := range 3000 {
		p.Rooms[0].Allow = append(p.Rooms[0].Allow, rule(t, fmt.Sprintf("host-%d.%s.example.net:443", i, strings.Repeat("x", 40)), 100+i))
	}
	w.change(control.Request{Op: control.OpPolicy, Policy: firewall.EncodePolicy(&p)})
	if _, body := w.send(proxyAddr, "GET /policy"+proxyHead); len(body) > 200_000 || !strings.Contains(body, " more lines.\n") {
		t.Errorf("%d bytes", len(body))
	}
}
