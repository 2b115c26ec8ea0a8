package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/guard/lease"
)

// One warning for all lines of models with a credential, and none for others.
func TestB44_WarnModelCalls(t *testing.T) {
	line := func(at, host, credential string) broker.Line {
		return broker.Line{Line: lease.Line{Room: "room", At: at, Host: host, Port: 443, Credential: credential}}
	}
	for _, x := range []struct {
		name  string
		lines []broker.Line
		want  string // "": no warning
	}{
		{"none", nil, ""},
		{"another host", []broker.Line{line("npm", "registry.npmjs.org", "npm")}, ""},
		{"a host of models", []broker.Line{line("claude", "api.anthropic.com", "work")}, "at api.anthropic.com with your credentials (work), and no budget of a run"},
		{"an endpoint of models", []broker.Line{line("openai", "models.acme.example", "gateway")}, "at models.acme.example with your credentials (gateway)"},
		{"several", []broker.Line{line("openai", "api.openai.com", "b"), line("anthropic", "api.anthropic.com", "a"), line("anthropic", "api.anthropic.com", "a")},
			"at api.anthropic.com, api.openai.com with your credentials (a, b)"},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out bytes.Buffer
			env := testEnv(&Env{}, &out)
			env.warnModelCalls(x.lines)
			if got := out.String(); !strings.Contains(got, x.want) || strings.Count(got, "warning") > 1 || (x.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, x.want)
			}
		})
	}
}
