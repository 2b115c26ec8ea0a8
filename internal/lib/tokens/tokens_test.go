package tokens

import (
	"strings"
	"testing"
)

// What issuers give a prefix is known; what only looks long is not.
func TestIn(t *testing.T) {
	const long = "0123456789abcdefghijABCDEFGHIJ0123456789abcdefghijABCDEFGHIJ"
	tests := []struct{ text, want string }{
		{"ghp_" + long[:36], "a GitHub token"},
		{"github_pat_" + long, "a GitHub token"},
		{"glpat-" + long[:20], "a GitLab token"},
		{"sk-ant-api03-" + long, "an Anthropic key"},
		{"sk-or-v1-" + strings.Repeat("0123456789abcdef", 4), "an OpenRouter key"},
		{"sk-proj-" + long, "an OpenAI key"},
		{"sk-" + long[:48], "an OpenAI key"},
		{"xoxb-" + long[:40], "a Slack token"},
		{"id=AKIA" + strings.ToUpper(long[:16]), "an AWS access key"},
		{"AIza" + long[:35], "a Google API key"},
		{"npm_" + long[:36], "an npm token"},
		{"pypi-" + long, "a PyPI token"},
		{"hf_" + long[:34], "a Hugging Face token"},
		{"sk_live_" + long[:24], "a Stripe key"},
		{"Bearer eyJ" + long[:20] + ".eyJ" + long[:20] + "." + long[:30], "a JSON Web Token"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEvQ==\n-----END PRIVATE KEY-----\n", "a private key"},
		{"-----BEGIN RSA PRIVATE KEY-----", "a private key"},

		{"", ""},
		{long, ""},
		{"ghp_short", ""},
		{"sk-ant-dummy", ""},
		{"task-" + long, ""},
		{"desk-" + long[:48], ""},
		{"npm_config_cache", ""},
		{"hf_transfer", ""},
		{"/var/lib/pypi-mirror", ""},
		{"-----BEGIN CERTIFICATE-----", ""},
		{"a.eyJ" + long[:20], ""},
	}
	for _, tt := range tests {
		if got := In(tt.text); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
		masked := string(Mask([]byte(tt.text)))
		if len(masked) != len(tt.text) || strings.Count(masked, "\n") != strings.Count(tt.text, "\n") || (masked == tt.text) != (tt.want == "") || In(masked) != "" {
			t.Errorf("%q is masked as %q", tt.text, masked)
		}
	}
}

// Places and lines of a file stay where they are, and nothing of a token is left.
func FuzzMask(f *testing.F) {
	f.Add([]byte("a: ghp_0123456789abcdefghijABCDEFGHIJ012345\nb: c\n"))
	f.Add([]byte("-----BEGIN EC PRIVATE KEY-----\r\nabc\r\n-----END EC PRIVATE KEY-----"))
	f.Fuzz(func(t *testing.T, data []byte) {
		out := Mask(data)
		if len(out) != len(data) {
			t.Fatalf("%d bytes became %d", len(data), len(out))
		}
		for i := range data {
			if out[i] != data[i] && (out[i] != '*' || data[i] == '\n') {
				t.Fatalf("byte %d: %q became %q", i, data[i], out[i])
			}
		}
	})
}
