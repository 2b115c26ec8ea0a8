package presets

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

func TestNames(t *testing.T) {
	want := []string{
		"alpine", "anthropic", "cargo", "conda", "debian", "deno", "docker-hub", "ghcr", "github", "gitlab", "go", "gradle", "hex", "homebrew", "huggingface",
		"jsr", "maven", "nodejs", "npm", "nuget", "openai", "packagist", "playwright", "pypi", "rubygems", "rustup", "terraform", "ubuntu",
	}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("Names() = %v, want %v", got, want)
	}
	if !Has("npm") {
		t.Error("no preset npm")
	}
	for _, name := range []string{"", "x", "../presets", "npm.json", "NPM"} {
		if p, ok := Get(name); ok {
			t.Errorf("Get(%q) = %v", name, p)
		}
		if Has(name) {
			t.Errorf("Has(%q)", name)
		}
	}
}

// Every name has a purpose; nothing is wider than the tools need; a preset
// never gives more than names that can be read aloud: no wildcard, no port
// but the web's.
func TestEveryPreset(t *testing.T) {
	for _, name := range Names() {
		if name != strings.ToLower(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("%s: a name is lower-case letters and -", name)
		}
		data, err := files.ReadFile("data/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		p, err := parse(name, data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Version < 1 || p.Description == "" || p.Note == "" || !strings.HasPrefix(p.Source, "https://") || len(p.Rules) == 0 {
			t.Errorf("%s: version, description, note, source and rules must be there", name)
		}
		for _, s := range []string{p.Description, p.Note} {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) || strings.TrimSpace(s) != s {
				t.Errorf("%s: %q isn't one line", name, s)
			}
		}
		leads := p.Environment == nil
		for variable, value := range p.Environment {
			leads = leads || strings.HasPrefix(value, "${URL}")
			if strings.Trim(variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_npmcofigrestylah") != "" || strings.Contains(strings.TrimPrefix(value, "${URL}"), "$") {
				t.Errorf("%s: %s=%s", name, variable, value)
			}
		}
		if !leads {
			t.Errorf("%s: its variables lead to no endpoint: %v", name, p.Environment)
		}
		for _, variable := range p.Tokens {
			if _, leads := p.Environment[variable]; leads || p.Environment == nil || strings.Trim(variable, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
				t.Errorf("%s: the token %s", name, variable)
			}
		}
		seen := map[string]bool{}
		for _, r := range p.Rules {
			if r.Purpose == "" || r.Host.IsWildcard() || r.Host.IsZero() || seen[r.Host.String()] {
				t.Errorf("%s: %s: wildcard, twice or without a purpose", name, r.Host)
			}
			seen[r.Host.String()] = true
			if n, _ := r.Host.Name(); firewall.IsDoH(n) {
				t.Errorf("%s: %s is a resolver over HTTPS", name, r.Host)
			}
			if shared[r.Host.String()] {
				t.Errorf("%s: %s: anyone can store data there; say so in the note instead", name, r.Host)
			}
			for _, ports := range r.Ports {
				if ports != (firewall.PortRange{First: 443, Last: 443}) && ports != (firewall.PortRange{First: 80, Last: 80}) {
					t.Errorf("%s: %s: port %v", name, r.Host, ports)
				}
			}
		}
	}
}

func TestOfModels(t *testing.T) {
	for _, x := range []struct {
		preset, host string
		want         bool
	}{
		{"x", "api.anthropic.com", true}, {"x", "api.openai.com", true}, {"anthropic", "models.example.org", true},
		{"npm", "registry.npmjs.org", false}, {"", "", false}, {"x", "anthropic", false},
	} {
		if got := OfModels(x.preset, x.host); got != x.want {
			t.Errorf("OfModels(%q, %q) = %v, want %v", x.preset, x.host, got, x.want)
		}
	}
}

// shared are hosts of storage where the path or the bucket tells whose it is:
// whoever reaches one reaches everybody's.
var shared = map[string]bool{
	"storage.googleapis.com": true, "s3.amazonaws.com": true, "storage.cloud.google.com": true, "firebasestorage.googleapis.com": true,
	"gist.githubusercontent.com": true, "gist.github.com": true, "uploads.github.com": true, "upload.pypi.org": true,
}

func TestParseRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"unknown key": `{"version": 1, "hosts": []}`,
		"host":        `{"version": 1, "rules": [{"host": "*.com", "ports": "443"}]}`,
		"port":        `{"version": 1, "rules": [{"host": "example.org", "ports": "0"}]}`,
		"not JSON":    `{`,
	} {
		if p, err := parse("x", []byte(data)); err == nil {
			t.Errorf("%s: %v", name, p)
		}
	}
}
