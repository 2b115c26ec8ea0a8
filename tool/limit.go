package tool

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// command is a limit of shell: `git log:*` is every argv that begins with the
// tokens git and log, `npm run test` is that argv alone.
type command struct {
	tokens []string
	more   bool
}

// parseCommand reads a limit of shell. The form of Claude Code with a blank,
// `git *`, is the same as `git:*`.
func parseCommand(limit string) (command, *OfferError) {
	c := command{tokens: strings.Fields(limit)}
	if n := len(c.tokens); n > 0 {
		switch last := c.tokens[n-1]; {
		case last == "*" || last == ":*":
			c.tokens, c.more = c.tokens[:n-1], true
		case strings.HasSuffix(last, ":*"):
			c.tokens[n-1], c.more = strings.TrimSuffix(last, ":*"), true
		}
	}
	if len(c.tokens) == 0 {
		return c, &OfferError{Message: "names no program", Hint: "write shell for every command, or a program: git:*"}
	}
	for _, t := range c.tokens {
		if strings.Contains(t, "*") {
			return c, &OfferError{Message: fmt.Sprintf("has a star in %q", t), Hint: "a star is allowed at the end alone, for more arguments: git log:*"}
		}
		if at := strings.IndexFunc(t, special); at >= 0 {
			return c, &OfferError{Message: fmt.Sprintf("has the character %q, but no shell interprets it", t[at:][:1]), Hint: "write the words of one plain command: git log:*"}
		}
	}
	if strings.Contains(c.tokens[0], "=") {
		return c, &OfferError{Message: "begins with a variable", Hint: "begin with the program: git:*"}
	}
	return c, nil
}

// special are characters that mean something to a shell. The words of a limit
// are compared literally, so they would be a misunderstanding.
func special(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("\"'\\$`|&;<>()", r) }

func (c command) allows(argv []string) bool {
	if !c.more {
		return slices.Equal(argv, c.tokens)
	}
	return len(argv) >= len(c.tokens) && slices.Equal(argv[:len(c.tokens)], c.tokens)
}

func (c command) covers(d command) bool {
	if !c.more {
		return !d.more && slices.Equal(d.tokens, c.tokens)
	}
	return c.allows(d.tokens)
}

// shellExcess returns why a limit of shell refuses a call; "" if it does not.
func shellExcess(limit string, args json.RawMessage) string {
	c, bad := parseCommand(limit)
	if bad != nil {
		return "the limit " + limit + " " + bad.Message
	}
	var a ShellArgs
	if err := Decode(args, &a); err != nil {
		return err.Error()
	}
	switch {
	case a.Command != "":
		return "a shell line can do more than one command; give the command as argv"
	case len(a.Argv) == 0:
		return "argv is empty"
	case !c.allows(a.Argv):
		return "the command is not one of those that are allowed"
	case len(a.Env) > 0:
		return "env could turn an allowed program into another one; leave it out"
	case a.Cwd != "" && strings.Contains(a.Argv[0], "/") && a.Argv[0][0] != '/':
		return fmt.Sprintf("cwd would change which program %s is; leave it out", a.Argv[0])
	}
	return ""
}

// parseDomain reads a limit of fetch_url: domain: and a host as `network.allow`
// writes it. Anyone may register below *.github.io, but whether it can be
// reached is the guard's to say.
func parseDomain(limit string) (firewall.HostPattern, *OfferError) {
	host, ok := strings.CutPrefix(limit, "domain:")
	if !ok {
		return firewall.HostPattern{}, &OfferError{Message: "has a limit that fetch_url doesn't know", Hint: "write domain:example.org"}
	}
	p, err := firewall.ParseHostPattern(host)
	if p.IsZero() {
		return p, &OfferError{Message: "can't be read: " + err.Error(), Hint: "write domain:example.org, domain:*.example.org (one label more) or domain:**.example.org (one or more)"}
	}
	return p, nil
}

// urlExcess returns why a limit of fetch_url refuses a URL; "" if it does not.
func urlExcess(limit, text string) string {
	p, bad := parseDomain(limit)
	if bad != nil {
		return "the limit " + limit + " " + bad.Message
	}
	u, err := url.Parse(text)
	if err != nil {
		return "the URL is not valid"
	}
	n, err := firewall.ParseName(u.Hostname())
	if err != nil {
		return err.Error()
	}
	if !p.Match(n) {
		return fmt.Sprintf("the host %s is not one of those that are allowed", n)
	}
	return ""
}
