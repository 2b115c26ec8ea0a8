package egressacl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// The patterns are POSIX extended regular expressions that RE2 reads in the same way.

// escape writes a canonical name: letters, digits, hyphens and dots.
func escape(name string) string { return strings.ReplaceAll(name, ".", `\.`) }

// label is one that the guard takes under a wildcard, as long as it may be.
var label = fmt.Sprintf(`[a-z0-9]([a-z0-9-]{0,%d}[a-z0-9])?`, firewall.MaxWildLabel-2)

// allowPattern matches the names of a line of allow, never more: no line opens a name that
// has other characters, and under a wildcard none with a longer label.
func allowPattern(p firewall.HostPattern) string {
	base, more := p.Base()
	switch {
	case more > 0:
		return label + `\.` + escape(base)
	case more < 0:
		return `(` + label + `\.)+` + escape(base)
	}
	return escape(base)
}

// denyPattern matches the names of a line of deny, whatever they are made of.
func denyPattern(p firewall.HostPattern) string {
	base, more := p.Base()
	switch {
	case more > 0:
		return `[^.]+\.` + escape(base)
	case more < 0:
		return `.+\.` + escape(base)
	}
	return escape(base)
}

// tooLong matches names that no wildcard reaches.
var tooLong = fmt.Sprintf(`[^:]{%d,}`, firewall.MaxWildName+1)

// resolvers are the names of [firewall.DoHNames], with those below them, that one of the
// wildcards could reach.
func resolvers(wild []firewall.Rule) (out []string) {
	for _, name := range firewall.DoHNames() {
		if slices.ContainsFunc(wild, func(r firewall.Rule) bool {
			base, _ := r.Host.Base()
			return name == base || strings.HasSuffix(name, "."+base) || strings.HasSuffix(base, "."+name)
		}) {
			out = append(out, name)
		}
	}
	return out
}

// portPattern matches the ports as decimal numbers.
func portPattern(ports []firewall.PortRange) string {
	var all []string
	for _, r := range ports {
		all = append(all, numbers(int(r.First), int(r.Last))...)
	}
	return "(" + strings.Join(all, "|") + ")"
}

// numbers matches those from first to last: ranges that end in 9s, digit by digit.
func numbers(first, last int) (out []string) {
	for first <= last {
		// The longest run of numbers that begins here and differs in its last digits alone.
		end, zeros := first, 0
		for step := 10; first%step == 0 && first+step-1 <= last && first > 0; step *= 10 {
			end, zeros = first+step-1, zeros+1
		}
		head := strconv.Itoa(first)
		head = head[:len(head)-zeros]
		out = append(out, head+strings.Repeat("[0-9]", zeros))
		first = end + 1
	}
	return out
}
