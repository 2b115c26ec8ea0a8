package verify

import (
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// modelKeys are the variables in which keys of models usually are.
var modelKeys = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY",
	"GROQ_API_KEY", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY", "COHERE_API_KEY", "AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
}

// names are those of variables that the probe and the configuration have.
func (w *Worker) variables(e *evidence) (inside, configured []string) {
	r, ok := w.Seen["environ"]
	switch {
	case !ok:
		e.miss("the probe said nothing of its environment")
	case slices.Contains(unclear, r.Seen):
		e.miss("its environment: %s", saw(r))
	default:
		inside = strings.Split(r.Seen, ",")
	}
	if w.Outside == nil || w.Outside.Why != "" {
		w.process(e)
		return inside, nil
	}
	for _, v := range w.Outside.Env {
		name, _, _ := strings.Cut(v, "=")
		configured = append(configured, name)
	}
	e.control(slices.Contains(configured, "HOME") && (inside == nil || slices.Contains(inside, "HOME")), "HOME is among them")
	return inside, configured
}

func (w *Worker) modelKeys() Line {
	e := w.begin("B44")
	e.tried("%d variables in which keys of models are", len(modelKeys))
	inside, configured := w.variables(e)
	for _, key := range modelKeys {
		if w.Env[key] {
			continue // the file passes it on (B45)
		}
		if w.Outside != nil && slices.Contains(w.Outside.Env, key+"="+firewall.DummyToken) {
			continue // an endpoint's dummy, which is no key
		}
		if slices.Contains(inside, key) {
			e.inside(false, "%s is in its environment", key)
		}
		if slices.Contains(configured, key) {
			e.outside(false, "%s is in its configured environment", key)
		}
	}
	if inside != nil {
		e.inside(true, "%d variables, none of them", len(inside))
	}
	if configured != nil {
		e.outside(true, "%d variables, none of them", len(configured))
	}
	return e.line()
}

// usual are variables that an image may have with the caller's value.
var usual = []string{"PATH", "LANG", "TERM", "SHELL", "TZ", "HOME", "USER", "HOSTNAME", "PWD", "SHLVL", "OLDPWD", "_"}

// environment: a command has what is configured and no more, and nothing that is
// configured is the caller's, unless the file names it.
func (w *Worker) environment() Line {
	e := w.begin("B45")
	e.tried("its variables, and those of a command")
	inside, configured := w.variables(e)
	for _, name := range inside {
		if configured != nil && !slices.Contains(configured, name) && !slices.Contains(usual, name) {
			e.inside(false, "a command has %s, which isn't configured", name)
		}
	}
	if inside != nil {
		e.inside(true, "%d variables", len(inside))
	}
	if configured == nil {
		return e.line()
	}
	for _, v := range w.Caller {
		name, value, _ := strings.Cut(v, "=")
		if len(value) >= 8 && !w.Env[name] && !slices.Contains(usual, name) && slices.Contains(w.Outside.Env, v) {
			e.outside(false, "it has your %s", name)
		}
	}
	e.outside(true, "%d are configured", len(configured))
	return e.line()
}

// Rest are lines of promises that no line is about yet: what is verified elsewhere, or by
// --disruptive alone.
func Rest(lines []Line) (rest []Line) {
	for _, m := range methods {
		if slices.ContainsFunc(lines, func(l Line) bool { return l.Promise == m.Promise }) {
			continue
		}
		why := elsewhere
		if slices.Contains(m.Kinds, Disruptive) {
			why = disruptiveHere
		}
		rest = append(rest, notTested(m.Promise, "", why))
	}
	return rest
}
