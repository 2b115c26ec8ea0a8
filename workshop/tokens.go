package workshop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/tokens"
)

// withoutTokens masks the tokens in what a diagnostic quotes of a file.
func withoutTokens(d diag.Diagnostic) diag.Diagnostic {
	mask := func(s string) string { return string(tokens.Mask([]byte(s))) }
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
		kind := tokens.In(cmp.Or(v.Source.Template, v.V))
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
