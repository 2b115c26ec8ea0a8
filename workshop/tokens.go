package workshop

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmdo/workshop/diag"
)

// tokenKinds are the forms of tokens that their issuers document, so that
// scanners find them. What has no prefix of its own is not looked for.
var tokenKinds = []struct{ kind, pattern string }{
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

// tokenRE matches any of the kinds, one group for each, where no word begins
// before it.
var tokenRE = sync.OnceValue(func() *regexp.Regexp {
	all := make([]string, len(tokenKinds))
	for i, k := range tokenKinds {
		all[i] = "(" + k.pattern + ")"
	}
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:` + strings.Join(all, "|") + `)`)
})

// tokenHints are parts of which each token has one: a text without any needs no
// look at the patterns.
var tokenHints = []string{"gh", "gl", "sk-", "xox", "xapp-", "AKIA", "ASIA", "AIza", "npm_", "pypi-", "hf_", "k_live_", "eyJ", "PRIVATE KEY"}

// tokenIn returns what kind of token a text has; "" if none.
func tokenIn(text string) string {
	if !slices.ContainsFunc(tokenHints, func(h string) bool { return strings.Contains(text, h) }) {
		return ""
	}
	m := tokenRE().FindStringSubmatchIndex(text)
	for i := 2; i < len(m); i += 2 {
		if m[i] >= 0 {
			return tokenKinds[i/2-1].kind
		}
	}
	return ""
}

// maskTokens returns the text with a star for each byte of a token, so that
// places in it stay what they are.
func maskTokens(text []byte) []byte {
	if tokenIn(string(text)) == "" {
		return text
	}
	out := bytes.Clone(text)
	for _, m := range tokenRE().FindAllSubmatchIndex(text, -1) {
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

// withoutTokens masks the tokens in what a diagnostic quotes of a file.
func withoutTokens(d diag.Diagnostic) diag.Diagnostic {
	mask := func(s string) string { return string(maskTokens([]byte(s))) }
	d.Summary, d.Detail, d.Hint = mask(d.Summary), mask(d.Detail), mask(d.Hint)
	return d
}

// checkTokens warns of variables whose values are tokens written into the file.
func (d *decoder) checkTokens(form *workshopForm, entries []workerEntry) {
	worker := "NAME"
	if len(entries) > 0 {
		worker = entries[0].Name.V
	}
	if form.Container != nil {
		d.tokens("env", form.Container.Env, worker)
	}
	for _, name := range slices.Sorted(maps.Keys(form.MCP)) {
		d.tokens("mcp."+name+".env", form.MCP[name].Env, worker)
	}
	for _, e := range entries {
		if e.Container != nil {
			d.tokens("env", e.Container.Env, e.Name.V)
		}
	}
}

// tokens is checkTokens for one mapping; the worker is one to be given the secret.
func (d *decoder) tokens(key string, env map[string]Value[string], worker string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		v := env[name]
		// With variables: the text of the file, defaults included.
		kind := tokenIn(cmp.Or(v.Source.Template, v.V))
		if kind == "" {
			continue
		}
		secret, server := strings.ToLower(name), ""
		if key != "env" {
			server = fmt.Sprintf(", secrets: {%s: %s} at the server", clip(name), secret)
		}
		d.add(diag.Diagnostic{Severity: diag.Warning, Code: "token-in-env", Range: v.Source.Range,
			Summary: fmt.Sprintf("%s.%s has %s in plain text", key, clip(name), kind),
			Detail:  "Generated files and `docker inspect` show variables; a secret is a file at /run/secrets that they don't show. Revoke what was committed.",
			Hint:    fmt.Sprintf("write secrets: [{name: %s, env: %s}] in the workshop's container%s, and `- {name: %s, container: {secrets: [%s]}}` in workers", secret, clip(name), server, worker, secret)})
	}
}
