package firewall_test

import (
	"fmt"
	"log"
	"net/netip"

	"github.com/llmdo/workshop/firewall"
)

// room is what one room may reach: one name and those below another, without one
// of them.
func room() *firewall.Matcher {
	rule := func(host, line string) firewall.Rule {
		h, err := firewall.ParseHostPattern(host)
		if err != nil {
			log.Fatal(err)
		}
		return firewall.Rule{Host: h, Ports: firewall.DefaultAllowPorts(), Line: line}
	}
	return firewall.RoomPolicy{
		Room: "room", Mode: firewall.Restricted,
		Allow: []firewall.Rule{rule("api.example.org", "workshop.yaml:5"), rule("**.example.net", "workshop.yaml:6")},
		Deny:  []firewall.Rule{rule("gist.example.net", "workshop.yaml:7")},
	}.Compile()
}

// Names are decided before anybody looks them up.
func ExampleMatcher_Name() {
	m := room()
	for _, host := range []string{"api.example.org", "docs.example.net", "gist.example.net", "example.com"} {
		name, err := firewall.ParseName(host)
		if err != nil {
			log.Fatal(err)
		}
		d := m.Name(name, 443)
		fmt.Print(host, ": ", d.Allowed, ", ", d.Reason)
		if d.Rule != nil {
			fmt.Print(", ", d.Rule.Line)
		}
		if d.Suggest != "" {
			fmt.Print("; to allow it: ", d.Suggest)
		}
		fmt.Println()
	}
	// Output:
	// api.example.org: true, allowed, workshop.yaml:5
	// docs.example.net: true, allowed, workshop.yaml:6
	// gist.example.net: false, denied, workshop.yaml:7
	// example.com: false, not-allowed; to allow it: example.com
}

// An allowed name opens no address that is closed.
func ExampleMatcher_Dial() {
	m := room()
	name, err := firewall.ParseName("api.example.org")
	if err != nil {
		log.Fatal(err)
	}
	allowed := m.Name(name, 443)
	for _, addr := range []string{"198.51.100.10", "10.0.0.1", "169.254.169.254"} {
		d := m.Dial(allowed, netip.MustParseAddr(addr), 443)
		fmt.Println(addr, d.Allowed, d.Reason)
	}
	// Output:
	// 198.51.100.10 true allowed
	// 10.0.0.1 false private
	// 169.254.169.254 false metadata
}

// The policy of a workshop is a JSON file, which its guard reads.
func ExampleParsePolicy() {
	p, err := firewall.ParsePolicy([]byte(`{
  "version": 1, "workshop": "review",
  "rooms": [{"room": "room", "mode": "restricted", "workers": ["reviewer"], "allow": [{"host": "api.example.org", "ports": ["443"]}]}]
}`))
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range p.Rooms {
		for _, line := range r.Allow {
			fmt.Println(r.Room, r.Mode, line.Target(), firewall.FormatPorts(line.Ports))
		}
	}
	// Output:
	// room restricted api.example.org 443
}
