package credential

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Template is what is known of a service: it spares a person the hosts and the form.
type Template struct {
	Name string
	// Env is the variable in which the service's own tools look for a token.
	Env string
	// Command prints the token, where its program is installed; its first word is looked up
	// in PATH once, when the credential is added. Lifetime is for it alone.
	Command  []string
	Lifetime time.Duration
	Hosts    []string // empty: the user says which
	As       Form
	// At and Requests are an endpoint for the last of the hosts: what its tools need, by
	// names that are to be replaced. Git, if it isn't empty, takes the place of Requests.
	At          string
	Requests    []string
	Git         string
	EncodedPath bool // %2f is part of its paths
	// GitAt is an endpoint for git at the first of several hosts; empty: there is none.
	GitAt string
}

// ownRepository is one that is read, and pushed to by branches of its own.
const ownRepository = `{read: [OWNER/REPO], push: {OWNER/REPO: ["agent/*"]}}`

// templates in order of their names. Sources: gh-auth-token(1); GitLab, "Personal access
// tokens" (any user for git) and issue 349461 (oauth2 alone for OAuth tokens; git takes no
// bearer token, the API takes both kinds as one); npm, "registry authentication"; PyPI,
// "API tokens" (user __token__); the APIs' references of Anthropic, OpenAI and Hugging Face.
var templates = []Template{
	{Name: "anthropic", Env: "ANTHROPIC_API_KEY", Hosts: []string{"api.anthropic.com"}, As: Form{Header: "x-api-key"},
		At: "anthropic", Requests: []string{"POST /v1/messages", "POST /v1/messages/count_tokens"}},
	{Name: "github", Env: "GITHUB_TOKEN", Command: []string{"gh", "auth", "token"}, Lifetime: 50 * time.Minute,
		Hosts: []string{"github.com", "api.github.com"}, As: Form{GitHub: true},
		At: "github-api", Requests: []string{"GET,HEAD /repos/OWNER/REPO/**"}, GitAt: "github", Git: ownRepository},
	{Name: "gitlab", Env: "GITLAB_TOKEN", Hosts: []string{"gitlab.com"}, As: Form{Basic: "oauth2"},
		At: "gitlab", Git: ownRepository},
	{Name: "gitlab-api", Env: "GITLAB_TOKEN", Hosts: []string{"gitlab.com"},
		At: "gitlab-api", Requests: []string{"GET,HEAD /api/v4/projects/NUMBER/**"}},
	{Name: "huggingface", Env: "HF_TOKEN", Hosts: []string{"huggingface.co"},
		At: "huggingface", Requests: []string{"GET,HEAD /ORG/MODEL/resolve/**", "GET,HEAD /api/models/ORG/MODEL/**"}},
	{Name: "npm", Env: "NPM_TOKEN", Hosts: []string{"registry.npmjs.org"},
		At: "npm", Requests: []string{"GET,HEAD *"}, EncodedPath: true},
	{Name: "openai", Env: "OPENAI_API_KEY", Hosts: []string{"api.openai.com"},
		At: "openai", Requests: []string{"POST /v1/responses", "POST /v1/chat/completions"}},
	{Name: "pypi", Env: "PYPI_TOKEN", As: Form{Basic: "__token__"},
		At: "pypi", Requests: []string{"GET,HEAD *"}},
}

// Templates are all, in order of their names.
func Templates() []Template { return slices.Clone(templates) }

// TemplateNamed returns one.
func TemplateNamed(name string) (Template, bool) {
	i := slices.IndexFunc(templates, func(t Template) bool { return t.Name == name })
	if i < 0 {
		return Template{}, false
	}
	return templates[i], true
}

// Lines are lines of `allow` in a workshop.yaml that use a credential: the template's one,
// or for the zero template one for each host, with all requests that read. For a proxy they
// are keys of `network`, of its first host.
func (t Template) Lines(c Credential) (out []string) {
	if c.As.Proxy {
		return []string{"proxy: http://" + c.HostTexts()[0], "proxy_credential: " + c.Name}
	}
	line := func(h Host, at string, more ...string) {
		parts := []string{"host: " + quote(h.Name)}
		if h.Port != 443 {
			parts = append(parts, fmt.Sprintf("port: %d", h.Port))
		}
		parts = append(append(parts, "at: "+at), more...)
		out = append(out, "- {"+strings.Join(append(parts, "credential: "+c.Name), ", ")+"}")
	}
	requests := func(texts ...string) string { return `requests: ["` + strings.Join(texts, `", "`) + `"]` }
	last := c.Hosts[len(c.Hosts)-1]
	switch {
	case t.Name == "":
		for i, h := range c.Hosts {
			at := c.Name
			if i > 0 {
				at = fmt.Sprintf("%s-%d", at, i+1)
			}
			line(h, at, requests("GET,HEAD *"))
		}
	case len(t.Requests) == 0:
		line(last, t.At, "git: "+t.Git)
	case t.EncodedPath:
		line(last, t.At, requests(t.Requests...), "encoded_slash: true")
	default:
		if t.GitAt != "" && len(c.Hosts) > 1 {
			line(c.Hosts[0], t.GitAt, "git: "+t.Git)
		}
		line(last, t.At, requests(t.Requests...))
	}
	return out
}
