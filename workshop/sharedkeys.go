package workshop

import (
	"fmt"
	"slices"
	"strings"
)

// baseRule is what a project may do with a key of the base that it extends.
type baseRule string

// The rules for bases.
const (
	ownKey    baseRule = "is the project's own, and not taken over"
	narrowed  baseRule = "narrows the base's"
	added     baseRule = "is added to the base's"
	replaces  baseRule = "takes the place of the base's"
	closedKey baseRule = "is the base's alone, unless its `open` says otherwise"
	fixedKey  baseRule = "is the base's where that has it, else the project's"
	publisher baseRule = "counts in the file that has it, for those that take it over"
)

// keyRule says what may become of a key of workshop.yaml where files are shared.
type keyRule struct {
	key  string
	base baseRule
	// imported: a file that is imported may have it.
	imported bool
	instead  string // of it in an imported file, for the hint
}

// keyRules has each key of workshop.yaml, in the order of the reference.
var keyRules = []keyRule{
	{"workshop.name", ownKey, true, ""},
	{"workshop.version", ownKey, true, ""},
	{"workshop.description", ownKey, true, ""},
	{"workshop.extends", publisher, false, ""},
	{"workshop.imports", closedKey, true, ""},
	{"workshop.grant", publisher, true, ""},
	{"workshop.open", publisher, false, ""},
	{"workshop.needs", publisher, true, ""},
	{"workshop.isolation", fixedKey, false, ""},
	{"workshop.container", narrowed, false, "write what the workers must be granted below needs"},
	{"workshop.workers", closedKey, true, ""},
	{"workshop.approvals", closedKey, false, ""},
	{"workshop.mcp", closedKey, false, ""},
	{"workshop.models", closedKey, false, ""},
	{"workshop.extends.from", publisher, false, ""},
	{"workshop.extends.version", publisher, false, ""},
	{"workshop.extends.signer", publisher, false, ""},
	{"workshop.imports[].as", closedKey, true, ""},
	{"workshop.imports[].from", closedKey, true, ""},
	{"workshop.imports[].version", closedKey, true, ""},
	{"workshop.imports[].signer", closedKey, true, ""},
	{"workshop.open.network", publisher, false, ""},
	{"workshop.open.mounts", publisher, false, ""},
	{"workshop.open.images", publisher, false, ""},
	{"workshop.open.build", publisher, false, ""},
	{"workshop.open.ports", publisher, false, ""},
	{"workshop.open.workers", publisher, false, ""},
	{"workshop.open.approvals", publisher, false, ""},
	{"workshop.open.mcp", publisher, false, ""},
	{"workshop.open.scratch", publisher, false, ""},
	{"workshop.open.tmp", publisher, false, ""},
	{"workshop.open.shm", publisher, false, ""},
	{"workshop.open.home", publisher, false, ""},
	{"workshop.open.resources", publisher, false, ""},
	{"workshop.open.network.allow", publisher, false, ""},
	{"workshop.open.mounts[].source", publisher, false, ""},
	{"workshop.open.mounts[].mode", publisher, false, ""},
	{"workshop.workers[].name", closedKey, true, ""},
	{"workshop.workers[].file", closedKey, true, ""},
	{"workshop.workers[].tools", closedKey, true, ""},
	{"workshop.workers[].allowed-tools", closedKey, true, ""},
	{"workshop.workers[].description", closedKey, true, ""},
	{"workshop.workers[].instructions", closedKey, true, ""},
	{"workshop.workers[].delegates-to", closedKey, true, ""},
	{"workshop.workers[].model", closedKey, true, ""},
	{"workshop.workers[].result_type", closedKey, true, ""},
	{"workshop.workers[].container", closedKey, true, ""},
	{"container.image", closedKey, false, ""},
	{"container.build", closedKey, false, ""},
	{"container.pull", replaces, false, ""},
	{"container.user", replaces, false, ""},
	{"container.workdir", replaces, false, ""},
	{"container.network", narrowed, true, ""},
	{"container.mounts", narrowed, true, ""},
	{"container.scratch", narrowed, true, ""},
	{"container.tmp", narrowed, true, ""},
	{"container.shm", narrowed, true, ""},
	{"container.home", narrowed, true, ""},
	{"container.resources", narrowed, true, ""},
	{"container.env", added, false, ""},
	{"container.git_author", narrowed, false, ""},
	{"container.secrets", narrowed, true, ""},
	{"container.caches", narrowed, true, ""},
	{"container.ports", closedKey, false, ""},
	{"container.runtime", fixedKey, false, ""},
	{"container.kernel", narrowed, true, ""},
	{"container.build.context", closedKey, false, ""},
	{"container.build.dockerfile", closedKey, false, ""},
	{"container.build.args", closedKey, false, ""},
	{"container.build.target", closedKey, false, ""},
	{"container.network.mode", narrowed, true, ""},
	{"container.network.allow", narrowed, true, ""},
	{"container.network.deny", added, true, ""},
	{"container.network.agents", narrowed, true, ""},
	{"container.network.dns", fixedKey, false, ""},
	{"container.network.proxy", fixedKey, false, ""},
	{"container.network.proxy_credential", fixedKey, false, ""},
	{"container.network.room", narrowed, true, ""},
	{"container.network.allow[].host", narrowed, true, ""},
	{"container.network.allow[].cidr", narrowed, true, ""},
	{"container.network.allow[].port", narrowed, true, ""},
	{"container.network.allow[].private", narrowed, true, ""},
	{"container.network.allow[].any_tenant", narrowed, true, ""},
	{"container.network.allow[].ech", narrowed, true, ""},
	{"container.network.allow[].upload", narrowed, true, ""},
	{"container.network.allow[].at", narrowed, true, ""},
	{"container.network.allow[].requests", narrowed, true, ""},
	{"container.network.allow[].git", narrowed, true, ""},
	{"container.network.allow[].encoded_slash", narrowed, true, ""},
	{"container.network.allow[].credential", narrowed, true, ""},
	{"container.network.allow[].preset", narrowed, true, ""},
	{"container.network.deny[].host", added, true, ""},
	{"container.network.deny[].cidr", added, true, ""},
	{"container.network.deny[].port", added, true, ""},
	{"container.network.deny[].private", added, true, ""},
	{"container.network.deny[].any_tenant", added, true, ""},
	{"container.network.deny[].ech", added, true, ""},
	{"container.network.deny[].upload", added, true, ""},
	{"container.network.deny[].at", added, true, ""},
	{"container.network.deny[].requests", added, true, ""},
	{"container.network.deny[].git", added, true, ""},
	{"container.network.deny[].encoded_slash", added, true, ""},
	{"container.network.deny[].credential", added, true, ""},
	{"container.network.deny[].preset", added, true, ""},
	{"container.network.allow[].git.read", narrowed, true, ""},
	{"container.network.allow[].git.push", narrowed, true, ""},
	{"container.network.allow[].git.delete", narrowed, true, ""},
	{"container.network.allow[].git.any_repository", narrowed, true, ""},
	{"container.network.agents[].ssh", narrowed, true, ""},
	{"container.network.agents[].hosts", narrowed, true, ""},
	{"container.network.agents[].sign", narrowed, true, ""},
	{"container.network.agents[].namespaces", narrowed, true, ""},
	{"container.mounts[].name", replaces, true, ""},
	{"container.mounts[].source", narrowed, true, ""},
	{"container.mounts[].target", replaces, true, ""},
	{"container.mounts[].mode", narrowed, true, ""},
	{"container.mounts[].exclude", added, true, ""},
	{"container.mounts[].copy", narrowed, true, ""},
	{"container.mounts[].outside_project", narrowed, false, ""},
	{"container.mounts[].git", narrowed, false, ""},
	{"container.mounts[].sockets", narrowed, false, ""},
	{"container.resources.memory", narrowed, true, ""},
	{"container.resources.cpu", narrowed, true, ""},
	{"container.resources.pids", narrowed, true, ""},
	{"container.resources.timeout", narrowed, true, ""},
	{"container.secrets[].name", narrowed, true, ""},
	{"container.secrets[].env", replaces, false, ""},
	{"container.secrets[].file", replaces, false, ""},
	{"container.caches[].name", narrowed, true, ""},
	{"container.caches[].target", replaces, false, ""},
	{"container.caches[].prune_above", narrowed, false, ""},
	{"container.ports[].published", closedKey, false, ""},
	{"container.ports[].target", closedKey, false, ""},
	{"container.ports[].host", closedKey, false, ""},
	{"container.ports[].expose_beyond_host", closedKey, false, ""},
	{"workshop.approvals.default", closedKey, false, ""},
	{"workshop.approvals.rules", closedKey, false, ""},
	{"workshop.approvals.rules[].tool", closedKey, false, ""},
	{"workshop.approvals.rules[].match", closedKey, false, ""},
	{"workshop.approvals.rules[].approval", closedKey, false, ""},
	{"workshop.mcp.NAME.command", closedKey, false, ""},
	{"workshop.mcp.NAME.args", closedKey, false, ""},
	{"workshop.mcp.NAME.env", closedKey, false, ""},
	{"workshop.mcp.NAME.secrets", closedKey, false, ""},
	{"workshop.models.services", closedKey, false, ""},
	{"workshop.models.services.NAME.server", closedKey, false, ""},
	{"workshop.models.services.NAME.image", closedKey, false, ""},
	{"workshop.models.services.NAME.file", closedKey, false, ""},
	{"workshop.models.services.NAME.sha256", closedKey, false, ""},
	{"workshop.models.services.NAME.context", closedKey, false, ""},
	{"workshop.models.services.NAME.resources", closedKey, false, ""},
}

// ruleOfKey is the rule of a key by its path.
func ruleOfKey(path string) (keyRule, bool) {
	for _, r := range keyRules {
		if r.key == path {
			return r, true
		}
	}
	return keyRule{}, false
}

// insteadImported says what to do with a key that an imported file can't have.
func (r keyRule) insteadImported() string {
	if r.instead != "" {
		return r.instead
	}
	key := r.key[strings.LastIndexByte(r.key, '.')+1:]
	return "remove it; who imports the file writes " + strings.TrimSuffix(key, "[]") + " where it is needed"
}

// sharedKeysTable says by rules what becomes of keys where files are shared. What is below
// a key of the same rule isn't named again.
func sharedKeysTable() string {
	var b strings.Builder
	b.WriteString("\n### What a project may do with its base\n\n| in a project the key | keys |\n|---|---|\n")
	for _, rule := range []baseRule{narrowed, added, replaces, closedKey, fixedKey, ownKey, publisher} {
		fmt.Fprintf(&b, "| %s | %s |\n", rule, keyNames(func(r keyRule) bool { return r.base == rule }))
	}
	fmt.Fprintf(&b, "\nA worker of the base is narrowed by its name: an item of `workers` with that alone and `tools`, of those that it has, or a `container`, which may have `%s`.\n", strings.Join(narrowingKeys(), "`, `"))
	fmt.Fprintf(&b, "\nAn imported file can have these keys, and no others: %s.\n", keyNames(func(r keyRule) bool { return r.imported }))
	return b.String()
}

// keyNames are the keys that a rule takes, those below one of them left out where it takes
// them all.
func keyNames(takes func(keyRule) bool) string {
	var names, whole []string
	below := func(key, of string) bool { return strings.HasPrefix(key, of+".") || strings.HasPrefix(key, of+"[]") }
	for _, r := range keyRules {
		if !takes(r) || slices.ContainsFunc(whole, func(w string) bool { return below(r.key, w) }) {
			continue
		}
		names = append(names, "`"+strings.TrimPrefix(r.key, "workshop.")+"`")
		if !slices.ContainsFunc(keyRules, func(o keyRule) bool { return below(o.key, r.key) && !takes(o) }) {
			whole = append(whole, r.key)
		}
	}
	return strings.Join(names, ", ")
}
