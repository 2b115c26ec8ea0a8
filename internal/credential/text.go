package credential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// Text is the credential as a line of the file; paths below home begin with "~/".
func (c Credential) Text(home string) string {
	path := func(p string) string {
		if rest, ok := subpath.Below(p, home); ok && rest != "" && home != "" {
			p = "~/" + rest
		}
		return quote(p)
	}
	texts := func(all []string) string {
		quoted := make([]string, len(all))
		for i, s := range all {
			quoted[i] = quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	var parts []string
	part := func(key, value string) { parts = append(parts, key+": "+value) }
	switch s := c.Source; {
	case c.Agent != "":
		part(agentKey, quote(c.Agent))
	case s.Env != "":
		part("env", quote(s.Env))
	case s.File != "":
		part("file", path(s.File))
	case s.Keyring != "":
		part("keyring", quote(s.Keyring))
	default:
		part("command", texts(s.Command))
	}
	if hosts := c.HostTexts(); len(hosts) > 0 {
		part("hosts", texts(hosts))
	}
	switch {
	case c.Agent != "":
		if c.KnownHosts != "" {
			part("known_hosts", path(c.KnownHosts))
		}
	case c.As.Header != "":
		part("as", "{header: "+quote(c.As.Header)+"}")
	case c.As.Basic != "":
		part("as", "{basic: "+quote(c.As.Basic)+"}")
	default:
		part("as", c.As.String())
	}
	if c.Lifetime != 0 {
		part("ttl", durationtext.Of(c.Lifetime))
	}
	if c.Authorities != "" {
		part("ca", path(c.Authorities))
	}
	if c.AskPush {
		part("use", "{push: ask}")
	}
	return c.Name + ": {" + strings.Join(parts, ", ") + "}"
}

// plainText is text that means itself in YAML without quotes, but for the words below.
var plainText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(~?/|[A-Za-z_])([A-Za-z0-9_./~-]*[A-Za-z0-9_/~-])?$`)
})

var words = []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

// quote is a text as YAML has it on one line.
func quote(s string) string {
	if plainText().MatchString(s) && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r >= ' ' && r <= '~':
			b.WriteRune(r)
		default:
			b.WriteString(yamltext.Escape(r))
		}
	}
	return `"` + b.String() + `"`
}

// String is the form as a flag has it: "bearer", "github", "proxy", "header:NAME" or
// "basic:USER".
func (f Form) String() string {
	switch {
	case f.Header != "":
		return "header:" + f.Header
	case f.Basic != "":
		return "basic:" + f.Basic
	case f.GitHub:
		return "github"
	case f.Proxy:
		return "proxy"
	}
	return "bearer"
}

// ParseForm reads what [Form.String] returns. Whether the name or user can be one is
// checked where the credential is added.
func ParseForm(text string) (Form, error) {
	kind, what, _ := strings.Cut(text, ":")
	switch {
	case text == "bearer":
		return Form{}, nil
	case text == "github":
		return Form{GitHub: true}, nil
	case text == "proxy":
		return Form{Proxy: true}, nil
	case kind == "header" && what != "":
		return Form{Header: what}, nil
	case kind == "basic" && what != "":
		return Form{Basic: what}, nil
	}
	return Form{}, fmt.Errorf("%q is not a form: bearer, github, proxy, header:NAME or basic:USER", text)
}

// Describe says which header carries a value to a host, and in which form.
func (f Form) Describe(host string) string {
	name, text := f.In(host, "")
	switch scheme, _, _ := strings.Cut(text, " "); {
	case scheme == "":
		return name
	case f.Basic != "":
		return name + ": Basic, with the user " + f.Basic
	case f.Proxy:
		return name + ": Basic"
	case scheme == "Basic":
		return name + ": Basic, with the user " + gitHubUser
	default:
		return name + ": " + scheme
	}
}
