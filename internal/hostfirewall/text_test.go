package hostfirewall

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// hostile is a name that would do more than name something.
const hostile = "x\" -j ACCEPT\nRULES\n`id` $(id) \\\n'; } # \u202e" + "\x00"

// What a repository names is in comments alone, and ends none.
func TestHostileNames(t *testing.T) {
	r := sample()
	r.Bridges[0].Project, r.Bridges[0].Lines[0].Why = hostile, strings.Repeat(hostile, 20)
	r.Ports[0].Why, r.NotHeld[0], r.Programs[1].Projects = hostile, hostile, []string{hostile}
	plain := sample()
	for _, tool := range []Tool{IPTables, NFTables, PF} {
		got, err := Export(tool, r)
		if err != nil {
			t.Fatal(err)
		}
		want, _ := Export(tool, plain)
		if g, w := code(got), code(want); g != w {
			t.Errorf("%s: other rules:\n%s\nwant:\n%s", tool, g, w)
		}
		for line := range strings.Lines(got) { // pf and nft go on after a backslash
			if strings.HasPrefix(line, "#") && strings.ContainsAny(line, "\\\x00") {
				t.Errorf("%s: %q", tool, line)
			}
		}
	}
	for _, change := range []func(*Rules){
		func(r *Rules) { r.Bridges[0].Interface = "br0 -j ACCEPT" },
		func(r *Rules) { r.Bridges[0].Interface = "" },
		func(r *Rules) { r.Programs[1].Cgroup = "/a\"b" },
		func(r *Rules) { r.Programs[1].Cgroup = "/" },
	} {
		r := sample()
		change(r)
		if text, err := Export(IPTables, r); err == nil || text != "" {
			t.Errorf("exported: %s", text)
		}
	}
}

// code is a text without its comments.
func code(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			before, _, _ := strings.Cut(line, "comment \"")
			before, _, _ = strings.Cut(before, " # ")
			_, after, _ := strings.Cut(line, "\" -j ")
			out = append(out, before, after)
		}
	}
	return strings.Join(out, "\n")
}

func TestComments(t *testing.T) {
	for name, text := range map[string]string{"a line": "project a, workshop.yaml:1: *.example.org", "long": strings.Repeat("a", 500), "hostile": strings.Repeat(hostile, 20)} {
		got := comment(text)
		if len(got) > maxComment || strings.ContainsAny(got, "\"'\\`$\n\x00;|&<>#") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := comment("project a, workshop.yaml:1: *.example.org"); got != "project a, workshop.yaml:1: *.example.org" {
		t.Errorf("changed: %s", got)
	}
}

// The two chains of ranges have the class of each address: none that a line opens
// contains one that it can't.
func TestRangesAreThoseOfClasses(t *testing.T) {
	for _, text := range []string{"10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "169.254.169.254", "172.31.0.1", "192.168.1.1", "198.18.0.1",
		"198.51.100.1", "168.63.129.16", "224.0.0.1", "255.255.255.255", "fd00::1", "fd00:ec2::254", "fe80::1", "ff02::1", "::1", "2001:db8::1", "64:ff9b::a00:1"} {
		a := netip.MustParseAddr(text)
		p := sample().plan()
		in := func(chain string) bool {
			for _, r := range p[chain] {
				_, prefix, _ := strings.Cut(r.matches[0].ipt, "-d ")
				if netip.MustParsePrefix(prefix).Contains(a) {
					return true
				}
			}
			return false
		}
		class := firewall.Classify(a)
		if got, want := in(chainNever), !class.Openable(); got != want {
			t.Errorf("%s (%s) is never opened: got %v, want %v", a, class, got, want)
		}
		if got, want := in(chainNever) || in(chainPrivate), class != firewall.Public; got != want {
			t.Errorf("%s (%s) is closed without a line: got %v, want %v", a, class, got, want)
		}
	}
}
