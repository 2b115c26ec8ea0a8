package app

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// An argument means what the same text means in workshop.yaml, and what is
// printed to be pasted means it again.
func TestParseRule(t *testing.T) {
	for _, tt := range []struct{ arg, target, allow, deny, line string }{
		{"api.example.org", "api.example.org", "80,443", "1-65535", "api.example.org"},
		{"API.example.org:22", "api.example.org", "22", "22", "api.example.org:22"},
		{"api.example.org:443", "api.example.org", "443", "443", "api.example.org:443"},
		{"x.example.org:22,8000-8010", "x.example.org", "22,8000-8010", "22,8000-8010", `"x.example.org:22,8000-8010"`},
		{"*.example.org", "*.example.org", "80,443", "1-65535", `"*.example.org"`},
		{"**.example.org:22", "**.example.org", "22", "22", `"**.example.org:22"`},
		{"bücher.example.org", "xn--bcher-kva.example.org", "80,443", "1-65535", "xn--bcher-kva.example.org"},
		{"10.20.0.0/16:5432", "10.20.0.0/16", "5432", "5432", "{cidr: 10.20.0.0/16, port: 5432}"},
		{"198.51.100.7", "198.51.100.7/32", "80,443", "1-65535", "{cidr: 198.51.100.7/32}"},
		{"198.51.100.7:22,80", "198.51.100.7/32", "22,80", "22,80", "{cidr: 198.51.100.7/32, port: [22, 80]}"},
		{"[2001:db8::]/48:443", "2001:db8::/48", "443", "443", `{cidr: "2001:db8::/48", port: 443}`},
		{"[2001:db8::1]:443", "2001:db8::1/128", "443", "443", `{cidr: "2001:db8::1/128", port: 443}`},
		{"[2001:db8::1]", "2001:db8::1/128", "80,443", "1-65535", `{cidr: "2001:db8::1/128"}`},
		{"2001:db8::/48", "2001:db8::/48", "80,443", "1-65535", `{cidr: "2001:db8::/48"}`},
		{"2001:db8::1", "2001:db8::1/128", "80,443", "1-65535", `{cidr: "2001:db8::1/128"}`},
		{"npm:80,443", "npm", "80,443", "80,443", `"npm:80,443"`}, // a host with the name of a preset
	} {
		for deny, ports := range map[bool]string{false: tt.allow, true: tt.deny} {
			r, f := parseRule(tt.arg, deny)
			if f != nil {
				t.Errorf("%s: %v", tt.arg, f)
				continue
			}
			if r.Target() != tt.target || firewall.FormatPorts(r.Ports) != ports || (firewall.Live{Deny: deny, Rule: r}).Check() != nil {
				t.Errorf("%s: %s %s, want %s %s (%v)", tt.arg, r.Target(), firewall.FormatPorts(r.Ports), tt.target, ports, firewall.Live{Deny: deny, Rule: r}.Check())
			}
			if got := RuleLine(r, deny); got != tt.line {
				t.Errorf("%s: the line is %s, want %s", tt.arg, got, tt.line)
			}
			again, f := parseRule(RuleArg(r, deny), deny)
			if f != nil || again.Target() != r.Target() || !slices.Equal(again.Ports, r.Ports) {
				t.Errorf("%s: printed as %s, which is %s %v", tt.arg, RuleArg(r, deny), again.Target(), again.Ports)
			}
		}
	}
}

// What workshop.yaml refuses is refused, and what never opens as well (B26).
func TestParseRuleRefuses(t *testing.T) {
	for arg, want := range map[string]string{
		"example.org:53":            "4 port 53",
		"npm":                       "2 is the name of a preset, not a host",
		"NPM":                       "2 is the name of a preset, not a host",
		"preset: npm":               "2 is the name of a preset, not a host",
		"preset:GitHub":             "2 is the name of a preset, not a host",
		"example.org:1-65535":       "4 port 53",
		"169.254.169.254":           "4 metadata addresses stay closed",
		"169.254.169.254/32:80":     "4 metadata addresses stay closed",
		"127.0.0.0/8":               "4 loopback addresses stay closed",
		"[::1]:8080":                "4 loopback addresses stay closed",
		"[fe80::1]":                 "4 link-local addresses stay closed",
		"224.0.0.1":                 "4 multicast addresses stay closed",
		"10.20.0.1/16":              "2 bits set beyond its mask",
		"[::ffff:10.0.0.1]/128":     "2 IPv4 range in IPv6 form",
		"*.com":                     "2 \"*.com\"",
		"*":                         "2 every name",
		"https://example.org/x":     "2 is a URL",
		"example.org:http":          "2 is not a port",
		"example.org:":              "2 is not a port",
		"example.org:0":             "2 out of range",
		"example.org:70000":         "2 out of range",
		"[example.org]:443":         "2 brackets",
		"[10.0.0.1]:443":            "2 brackets",
		"a.example.org:22:33":       "2 has a port",
		"0x7f000001":                "2 ",
		"":                          "2 ",
		"exa mple.org":              "2 ",
		"-x.example.org":            "2 ",
		".example.org":              "2 begins with a dot",
		strings.Repeat("a.", 200):   "2 ",
		"user@example.org":          "2 user information",
		"fe80::1%eth0":              "2 ",
		"example.org:443/path":      "2 is not a port",
		"example.org\x1b[2J":        "2 ",
		"\u202eexample.org":         "2 ",
		"198.51.100.7:5432,53":      "4 port 53",
		"[2001:db8::]/129:443":      "2 ",
		"[2001:db8::]48:443":        "2 ",
		"2001:db8::1:443:1:1:1:1:1": "2 ",
	} {
		_, f := parseRule(arg, false)
		code, text, _ := strings.Cut(want, " ")
		if f == nil || code != string(rune('0'+f.Code)) || !strings.Contains(f.Error(), text) {
			t.Errorf("%q: %v, want %s", arg, f, want)
		}
	}
	if _, f := parseRule("*.github.io", false); f == nil || !strings.Contains(strings.Join(f.Hints, ""), "any_tenant") {
		t.Errorf("*.github.io: %v", f)
	}
	for arg, want := range map[string]string{
		"npm": "add `- preset: npm` to network.allow", "preset: npm": "add `- preset: npm` to network.allow",
		"example.org:https": "write example.org:443", "example.org:443/tcp": "write example.org:443",
	} {
		if _, f := parseRule(arg, false); f == nil || !strings.Contains(strings.Join(f.Hints, ""), want) {
			t.Errorf("%s: %v, want the hint %q", arg, f, want)
		}
	}
	if _, f := parseRule("*.github.io", true); f != nil {
		t.Errorf("deny *.github.io: %v", f)
	}
}

// What a change would do is told from the lines of the file and the live ones.
func TestCoverage(t *testing.T) {
	rule := func(text string, deny bool, line string) firewall.Rule {
		r, f := parseRule(text, deny)
		if f != nil {
			t.Fatal(f)
		}
		if line != "" {
			r.Line = line
		}
		return r
	}
	now := time.Now()
	live := func(room, text string, deny bool, lasts time.Duration) firewall.Live {
		l := firewall.Live{Room: room, Deny: deny, Rule: rule(text, deny, "")}
		if lasts > 0 {
			l.Until = now.Add(lasts)
		}
		return l
	}
	room := func(live ...firewall.Live) *roomLines {
		r := &roomLines{known: true, live: live,
			allow: []firewall.Rule{rule("**.example.org", false, "workshop.yaml:5"), rule("ssh.example.org:22", false, "workshop.yaml:6")},
			deny:  []firewall.Rule{rule("gist.example.org", true, "workshop.yaml:8"), rule("10.0.0.0/8", true, "workshop.yaml:9")}}
		r.Mode = firewall.Restricted
		return r
	}
	open := room()
	open.Mode = firewall.Open
	tests := []struct {
		name  string
		room  *roomLines
		text  string
		deny  bool
		lasts time.Duration
		want  coverage
		line  string
	}{
		{"new", room(), "example.com", false, 0, notCovered, ""},
		{"another port", room(), "api.example.org:22", false, 0, notCovered, ""},
		{"covered by a wildcard", room(), "api.example.org", false, 0, covered, "**.example.org at workshop.yaml:5"},
		{"one port of it", room(), "api.example.org:443", false, time.Hour, covered, "**.example.org at workshop.yaml:5"},
		{"two lines together", room(), "ssh.example.org:22,80", false, 0, covered, "several lines together"},
		{"denied", room(), "gist.example.org:22", false, 0, coveredByDeny, "gist.example.org at workshop.yaml:8"},
		{"denied range", room(), "10.1.0.0/16:5432", false, 0, coveredByDeny, "10.0.0.0/8 at workshop.yaml:9"},
		{"denied already", room(), "gist.example.org", true, 0, covered, "gist.example.org at workshop.yaml:8"},
		{"deny more", room(), "**.example.org", true, 0, notCovered, ""},
		{"live as long", room(live("", "example.com", false, 0)), "example.com", false, time.Hour, covered, "`workshop firewall allow example.com`"},
		{"live, for longer", room(live("", "example.com", false, time.Minute)), "example.com", false, time.Hour, notCovered, ""},
		{"live, for ever", room(live("", "example.com", false, time.Hour)), "example.com", false, 0, notCovered, ""},
		{"takes a live deny back", room(live("", "api.example.com", true, 0)), "api.example.com", false, 0, notCovered, ""},
		{"takes a live deny back that wins over a line", room(live("", "api.example.org", true, 0)), "api.example.org", false, 0, notCovered, ""},
		{"a live deny of other ports", room(live("", "api.example.org:22", true, 0)), "api.example.org", false, 0, covered, "**.example.org at workshop.yaml:5"},
		{"under a wider live deny", room(live("", "**.example.com", true, 0)), "api.example.com", false, 0, coveredByDeny, "`workshop firewall deny **.example.com`"},
		{"open", open, "example.com", false, 0, openMode, ""},
		{"open, denied", open, "gist.example.org", false, 0, coveredByDeny, "gist.example.org at workshop.yaml:8"},
		{"open, private range", open, "192.168.0.0/16:22", false, 0, notCovered, ""},
	}
	for _, tt := range tests {
		var until time.Time
		if tt.lasts > 0 {
			until = now.Add(tt.lasts)
		}
		got, line := tt.room.coverage(rule(tt.text, tt.deny, ""), tt.deny, true, until)
		if got != tt.want || line != tt.line {
			t.Errorf("%s: %d %q, want %d %q", tt.name, got, line, tt.want, tt.line)
		}
	}
	// A live deny of all rooms is not taken back for one.
	r := room(live("", "api.example.com", true, 0))
	if got, _ := r.coverage(rule("api.example.com", false, ""), false, false, time.Time{}); got != coveredByDeny {
		t.Errorf("allowed in one room what is denied in all: %d", got)
	}
	private := rule("api.example.org", false, "")
	private.Private = true
	if got, _ := room().coverage(private, false, true, time.Time{}); got != notCovered {
		t.Errorf("--private is covered by a line without: %d", got)
	}
	if got, _ := open.coverage(private, false, true, time.Time{}); got != notCovered {
		t.Errorf("--private is more than mode open: %d", got)
	}
}
