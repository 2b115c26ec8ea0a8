// Package tokens finds tokens and keys in texts, by the forms that their issuers give
// them.
package tokens

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// kinds are the forms of tokens that their issuers document, so that
// scanners find them. What has no prefix of its own is not looked for.
var kinds = []struct{ kind, form string }{
	{"a GitHub token", `gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{40,255}`},
	{"a GitLab token", `gl(?:pat|ptt|dt|rt|cbt|soat)-[A-Za-z0-9_.-]{20,255}`},
	{"an Anthropic key", `sk-ant-[A-Za-z0-9_-]{32,255}`},
	{"an OpenRouter key", `sk-or-v1-[0-9a-f]{64}`},
	{"an OpenAI key", `sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{32,255}|sk-[A-Za-z0-9]{40,64}`},
	{"a Slack token", `xox[abeoprs]-[A-Za-z0-9-]{20,255}|xapp-[0-9]-[A-Za-z0-9-]{20,255}`},
	{"an AWS access key", `(?:AKIA|ASIA)[A-Z0-9]{16}`},
	{"a Google API key", `AIza[A-Za-z0-9_-]{35}`},
	{"an npm token", `npm_[A-Za-z0-9]{36}`},
	{"a PyPI token", `pypi-[A-Za-z0-9_-]{50,500}`},
	{"a Hugging Face token", `hf_[A-Za-z0-9]{34,64}`},
	{"a Stripe key", `[rs]k_live_[A-Za-z0-9]{20,255}`},
	{"a JSON Web Token", `eyJ[A-Za-z0-9_-]{10,1000}\.eyJ[A-Za-z0-9_-]{10,1000}\.[A-Za-z0-9_-]{10,1000}`},
	{"a private key", `-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY-----(?:[^-]*-----END)?`},
}

// pattern matches any of the kinds, one group for each, where no word begins
// before it.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = "(" + k.form + ")"
	}
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:` + strings.Join(all, "|") + `)`)
})

// hints are parts of which each token has one: a text without any needs no
// look at the patterns.
var hints = []string{"gh", "gl", "sk-", "xox", "xapp-", "AKIA", "ASIA", "AIza", "npm_", "pypi-", "hf_", "k_live_", "eyJ", "PRIVATE KEY"}

// In returns what kind of token a text has; "" if none.
func In(text string) string {
	if !slices.ContainsFunc(hints, func(h string) bool { return strings.Contains(text, h) }) {
		return ""
	}
	m := pattern().FindStringSubmatchIndex(text)
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return kinds[i/2-1].kind
		}
	}
	return ""
}

// Mask returns the text with a star for each byte of a token, so that
// places in it stay what they are.
func Mask(text []byte) []byte {
	if In(string(text)) == "" {
		return text
	}
	out := bytes.Clone(text)
	for _, m := range pattern().FindAllSubmatchIndex(text, -1) {
		for i := 2; i < len(m); i += 2 {
			for at := m[i]; at >= 0 && at < m[i+1]; at++ {
				if out[at] != '\n' && out[at] != '\r' {
					out[at] = '*'
				}
			}
		}
	}
	return out
}
