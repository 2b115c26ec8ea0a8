package hostfirewall

import (
	"fmt"
	"strings"

	"github.com/llmdo/workshop/internal/lib/textwrap"
)

// maxComment bounds a comment in bytes: nft has at most 128.
const maxComment = 120

// comment is a text as a quoted comment of a rule. A shell, iptables-restore, nft and
// pfctl read what is around it, with the rights of root: whatever could mean anything to
// one of them is replaced.
func comment(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case b.Len() >= maxComment:
			return b.String()
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune(" ._:/,*@+=-()", r):
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// header is the text above the rules, as comments: what it is, the command line, and what
// it holds.
func (r *Rules) header(what, command string, lines ...string) string {
	for _, b := range r.Bridges {
		lines = append(lines, fmt.Sprintf("- project %s: on %s only its guard (%s) leaves: to public addresses over TCP, to the resolvers and to the ranges that its lines name. No connection comes in there from elsewhere, but to ports that its file publishes beyond loopback.", b.Project, b.Interface, b.guards()))
	}
	for _, p := range r.Programs {
		by := fmt.Sprintf("user %d", p.UID)
		if p.Cgroup != "" {
			by = "control group " + p.Cgroup
		}
		lines = append(lines, fmt.Sprintf("- %s: programs of %s leave to public addresses over TCP, to the resolvers and to the ranges that lines name.", projects(p.Projects), by))
	}
	if len(r.Ports) > 0 {
		lines = append(lines, "- published ports take connections from loopback alone.")
	}
	for _, s := range r.NotHeld {
		lines = append(lines, "- not held: "+s)
	}
	return remarks(what) + "#     " + command + "\n" + remarks(lines...)
}

// remarks are lines of comments, which no text ends or goes on beyond.
func remarks(texts ...string) string {
	var b strings.Builder
	for _, text := range texts {
		text = strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' || r == '\\' {
				return '_'
			}
			return r
		}, text)
		indent := 0
		if strings.HasPrefix(text, "- ") {
			indent = 2
		}
		for line := range strings.SplitSeq(textwrap.Lines(text, 90, indent), "\n") {
			b.WriteString(strings.TrimRight("# "+line, " ") + "\n")
		}
	}
	return b.String()
}

func (b Bridge) guards() string {
	var out []string
	if b.Guard4.IsValid() {
		out = append(out, b.Guard4.String())
	}
	if b.Guard6.IsValid() {
		out = append(out, b.Guard6.String())
	}
	if len(out) == 0 {
		return "which has no address"
	}
	return strings.Join(out, ", ")
}

const about = "Host rules for the workshops that are up. To apply them:"

// again is when the text has to be made again.
const again = "Export and apply again after each workshop up or down, and after a change of allow lines or of ports: the rules are about what was up. They only refuse, and accept nothing that another rule of this machine refuses."

func removal(command string) string {
	return remarks("Removes the host rules of workshop:") + "#     " + command + "\n"
}
