package diff

import (
	"cmp"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// value is a part of a surface that can't be ordered.
type value struct {
	text string // with a variable: the template
	open bool   // it has a variable
	at   diag.Range
}

// surface says how a key of workshop.yaml is compared. Exactly one of its fields is
// set.
type surface struct {
	key string
	// of returns the values of a worker by their names, of a key whose values can't be
	// ordered: different ones are changed, or unknown if one has a variable.
	of func(*workshop.Worker) map[string]value
	// by names what compares the key: the rules of narrowing ("contained"), a function
	// of this package, or the key that it is a part of.
	by string
	// neutral says why a change of the key grants nothing.
	neutral string
}

const contained = "contained"

// surfaces has each key of workshop.yaml, in the order of the reference.
var surfaces = []surface{
	{key: "workshop.name", neutral: "it names files and containers"},
	{key: "workshop.version", neutral: "it is for people"},
	{key: "workshop.description", neutral: "it is for people"},
	{key: "workshop.extends", by: "workers"},
	{key: "workshop.imports", by: "workers"},
	{key: "workshop.grant", by: "workers"},
	{key: "workshop.open", by: "opened"},
	{key: "workshop.needs", by: "workers"},
	{key: "workshop.isolation", by: "isolation"},
	{key: "workshop.container", by: "workers"},
	{key: "workshop.workers", by: "workers"},
	{key: "workshop.approvals", by: "approvals"},
	{key: "workshop.mcp", by: "servers"},
	{key: "workshop.models", by: "models"},
	{key: "workshop.extends.from", by: "workers"},
	{key: "workshop.extends.version", by: "workers"},
	{key: "workshop.extends.signer", neutral: "who signed what runs is in the lock"},
	{key: "workshop.imports[].as", by: "workers"},
	{key: "workshop.imports[].from", by: "workers"},
	{key: "workshop.imports[].version", by: "workers"},
	{key: "workshop.imports[].signer", neutral: "who signed what runs is in the lock"},
	{key: "workshop.open.network", by: "opened"},
	{key: "workshop.open.mounts", by: "opened"},
	{key: "workshop.open.images", by: "opened"},
	{key: "workshop.open.build", by: "opened"},
	{key: "workshop.open.ports", by: "opened"},
	{key: "workshop.open.workers", by: "opened"},
	{key: "workshop.open.approvals", by: "opened"},
	{key: "workshop.open.mcp", by: "opened"},
	{key: "workshop.open.scratch", by: "opened"},
	{key: "workshop.open.tmp", by: "opened"},
	{key: "workshop.open.shm", by: "opened"},
	{key: "workshop.open.home", by: "opened"},
	{key: "workshop.open.resources", by: "opened"},
	{key: "workshop.open.network.allow", by: "opened"},
	{key: "workshop.open.mounts[].source", by: "opened"},
	{key: "workshop.open.mounts[].mode", by: "opened"},
	{key: "workshop.workers[].name", by: "workers"},
	{key: "workshop.workers[].file", neutral: "what the file says is compared"},
	{key: "workshop.workers[].tools", by: "tools"},
	{key: "workshop.workers[].allowed-tools", by: "tools"},
	{key: "workshop.workers[].description", of: description},
	{key: "workshop.workers[].instructions", of: instructions},
	{key: "workshop.workers[].delegates-to", by: "delegates"},
	{key: "workshop.workers[].model", of: model},
	{key: "workshop.workers[].result_type", of: resultType},
	{key: "workshop.workers[].container", by: "workers"},
	{key: "container.image", of: image},
	{key: "container.build", by: "container.build.context"},
	{key: "container.pull", of: pull},
	{key: "container.user", of: user},
	{key: "container.workdir", of: workdir},
	{key: "container.network", by: contained},
	{key: "container.mounts", by: contained},
	{key: "container.scratch", by: contained},
	{key: "container.tmp", by: contained},
	{key: "container.shm", by: contained},
	{key: "container.home", by: contained},
	{key: "container.resources", by: contained},
	{key: "container.env", of: env},
	{key: "container.git_author", by: contained},
	{key: "container.secrets", by: contained},
	{key: "container.caches", by: contained},
	{key: "container.ports", by: contained},
	{key: "container.runtime", of: runtimeName},
	{key: "container.kernel", by: contained},
	{key: "container.build.context", of: build},
	{key: "container.build.dockerfile", by: "container.build.context"},
	{key: "container.build.args", by: "container.build.context"},
	{key: "container.build.target", by: "container.build.context"},
	{key: "container.network.mode", by: contained},
	{key: "container.network.allow", by: contained},
	{key: "container.network.deny", by: contained},
	{key: "container.network.agents", by: contained},
	{key: "container.network.dns", of: resolvers},
	{key: "container.network.proxy", of: proxy},
	{key: "container.network.proxy_credential", of: proxyCredential},
	{key: "container.network.room", by: contained},
	{key: "container.network.allow[].host", by: contained},
	{key: "container.network.allow[].cidr", by: contained},
	{key: "container.network.allow[].port", by: contained},
	{key: "container.network.allow[].private", by: contained},
	{key: "container.network.allow[].any_tenant", neutral: "it accepts a wildcard, and the host says which"},
	{key: "container.network.allow[].ech", by: contained},
	{key: "container.network.allow[].upload", by: contained},
	{key: "container.network.allow[].at", by: contained},
	{key: "container.network.allow[].requests", by: contained},
	{key: "container.network.allow[].git", by: contained},
	{key: "container.network.allow[].encoded_slash", by: contained},
	{key: "container.network.allow[].credential", by: contained},
	{key: "container.network.allow[].preset", by: contained},
	{key: "container.network.deny[].host", by: contained},
	{key: "container.network.deny[].cidr", by: contained},
	{key: "container.network.deny[].port", by: contained},
	{key: "container.network.deny[].private", neutral: "a denied name has no addresses"},
	{key: "container.network.deny[].any_tenant", neutral: "it accepts a wildcard, and the host says which"},
	{key: "container.network.deny[].ech", neutral: "it is for allow"},
	{key: "container.network.deny[].upload", neutral: "it is for allow"},
	{key: "container.network.deny[].at", neutral: "it is for allow"},
	{key: "container.network.deny[].requests", neutral: "it is for allow"},
	{key: "container.network.deny[].git", neutral: "it is for allow"},
	{key: "container.network.deny[].encoded_slash", neutral: "it is for allow"},
	{key: "container.network.deny[].credential", neutral: "it is for allow"},
	{key: "container.network.deny[].preset", neutral: "it is for allow"},
	{key: "container.network.allow[].git.read", by: contained},
	{key: "container.network.allow[].git.push", by: contained},
	{key: "container.network.allow[].git.delete", by: contained},
	{key: "container.network.allow[].git.any_repository", neutral: "it accepts repositories of every owner, and the others say which"},
	{key: "container.network.agents[].ssh", by: contained},
	{key: "container.network.agents[].hosts", by: contained},
	{key: "container.network.agents[].sign", by: contained},
	{key: "container.network.agents[].namespaces", by: contained},
	{key: "container.mounts[].name", neutral: "it is a name in messages"},
	{key: "container.mounts[].source", by: contained},
	{key: "container.mounts[].target", by: "moved"},
	{key: "container.mounts[].mode", by: contained},
	{key: "container.mounts[].exclude", by: contained},
	{key: "container.mounts[].copy", by: contained},
	{key: "container.mounts[].outside_project", by: contained},
	{key: "container.mounts[].git", by: contained},
	{key: "container.mounts[].sockets", by: contained},
	{key: "container.resources.memory", by: contained},
	{key: "container.resources.cpu", by: contained},
	{key: "container.resources.pids", by: contained},
	{key: "container.resources.timeout", by: contained},
	{key: "container.secrets[].name", neutral: "the value is where it comes from"},
	{key: "container.secrets[].env", by: contained},
	{key: "container.secrets[].file", by: contained},
	{key: "container.caches[].name", by: contained},
	{key: "container.caches[].target", of: cacheTargets},
	{key: "container.caches[].prune_above", by: contained},
	{key: "container.ports[].published", of: published},
	{key: "container.ports[].target", by: contained},
	{key: "container.ports[].host", by: contained},
	{key: "container.ports[].expose_beyond_host", by: "container.ports[].host"},
	{key: "workshop.approvals.default", by: "approvals"},
	{key: "workshop.approvals.rules", by: "approvals"},
	{key: "workshop.approvals.rules[].tool", by: "approvals"},
	{key: "workshop.approvals.rules[].match", by: "approvals"},
	{key: "workshop.approvals.rules[].approval", by: "approvals"},
	{key: "workshop.mcp.NAME.command", by: "servers"},
	{key: "workshop.mcp.NAME.args", by: "servers"},
	{key: "workshop.mcp.NAME.env", by: "servers"},
	{key: "workshop.mcp.NAME.secrets", by: "servers"},
	{key: "workshop.models.services", by: "models"},
	{key: "workshop.models.services.NAME.server", by: "models"},
	{key: "workshop.models.services.NAME.image", by: "models"},
	{key: "workshop.models.services.NAME.file", by: "models"},
	{key: "workshop.models.services.NAME.sha256", by: "models"},
	{key: "workshop.models.services.NAME.context", by: "models"},
	{key: "workshop.models.services.NAME.resources", by: "models"},
}

// name is the surface as rows have it: the path below the container or the worker.
func (s *surface) name() string {
	for _, prefix := range []string{"container.", "workshop.workers[].", "workshop."} {
		if rest, ok := strings.CutPrefix(s.key, prefix); ok {
			return strings.TrimSuffix(strings.ReplaceAll(rest, "[]", ""), ".context")
		}
	}
	return s.key
}

// one is a surface with one value; none where it is empty.
func one(v workshop.Value[string]) map[string]value {
	text := cmp.Or(v.Source.Template, v.V)
	if text == "" {
		return nil
	}
	return map[string]value{"": {text: text, open: v.Source.Template != "", at: v.Source.Range}}
}

// named puts the values of a part under its name.
func named(into map[string]value, part string, v workshop.Value[string]) {
	for _, x := range one(v) {
		into[part] = x
	}
}

func image(k *workshop.Worker) map[string]value { return one(k.Container.Image) }

func build(k *workshop.Worker) map[string]value {
	b := k.Container.Build
	if b == nil {
		return nil
	}
	out := map[string]value{}
	named(out, "context", b.Context)
	named(out, "dockerfile", b.Dockerfile)
	named(out, "target", b.Target)
	for name, v := range b.Args {
		out["args."+name] = textOf(v)
	}
	return out
}

// textOf is a value that may be empty.
func textOf(v workshop.Value[string]) value {
	return value{text: cmp.Or(v.Source.Template, v.V), open: v.Source.Template != "", at: v.Source.Range}
}

func pull(k *workshop.Worker) map[string]value {
	v := k.Container.Pull
	return one(workshop.Value[string]{V: string(v.V), Source: v.Source})
}

func user(k *workshop.Worker) map[string]value        { return one(k.Container.User) }
func workdir(k *workshop.Worker) map[string]value     { return one(k.Container.Workdir) }
func runtimeName(k *workshop.Worker) map[string]value { return one(k.Container.Runtime) }
func proxy(k *workshop.Worker) map[string]value       { return one(k.Container.Network.Proxy.Value) }

func proxyCredential(k *workshop.Worker) map[string]value {
	return one(k.Container.Network.ProxyCredential)
}

func resolvers(k *workshop.Worker) map[string]value {
	var all value
	for i, x := range k.Container.Network.DNS {
		if v := textOf(x.Value); i == 0 {
			all = v
		} else {
			all.text, all.open = all.text+", "+v.text, all.open || v.open
		}
	}
	if all.text == "" {
		return nil
	}
	return map[string]value{"": all}
}

func env(k *workshop.Worker) map[string]value {
	out := map[string]value{}
	for name, v := range k.Container.Env {
		out[name] = textOf(v)
	}
	return out
}

func cacheTargets(k *workshop.Worker) map[string]value {
	out := map[string]value{}
	for _, c := range k.Container.Caches {
		out[c.Name] = value{text: c.Target.V, at: sourceOr(c.Target.Source, c.At)}
	}
	return out
}

func sourceOr(s, other diag.Source) diag.Range {
	if s.Range.Filename != "" {
		return s.Range
	}
	return other.Range
}

func description(k *workshop.Worker) map[string]value {
	return prose(k.Definition.Description, k)
}

func instructions(k *workshop.Worker) map[string]value {
	return prose(k.Definition.Instructions, k)
}

func model(k *workshop.Worker) map[string]value { return prose(k.Definition.Model, k) }

func resultType(k *workshop.Worker) map[string]value {
	return prose(string(k.Definition.ResultType), k)
}

// prose is text of a worker's definition; how it is wrapped at its ends isn't it.
func prose(text string, k *workshop.Worker) map[string]value {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	return map[string]value{"": {text: text, at: k.Definition.Source.Range}}
}
