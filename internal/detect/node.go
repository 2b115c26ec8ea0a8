package detect

import (
	"encoding/json"
	"slices"
	"strings"
)

// packageJSON is what is read of package.json. A value of another type counts as none.
type packageJSON struct {
	PackageManager  text                       `json:"packageManager"`
	Workspaces      json.RawMessage            `json:"workspaces"`
	Scripts         map[string]json.RawMessage `json:"scripts"`
	Dependencies    map[string]json.RawMessage `json:"dependencies"`
	DevDependencies map[string]json.RawMessage `json:"devDependencies"`
}

// text is a string; of a value of another type nothing.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	}
	return nil
}

// nodeManagers are package managers by their lockfiles, the first that is found.
var nodeManagers = []struct{ name, lock, install, test string }{
	{"pnpm", "pnpm-lock.yaml", "pnpm install", "pnpm test"},
	{"yarn", "yarn.lock", "yarn install", "yarn test"},
	{"bun", "bun.lock", "bun install", "bun run test"},
	{"bun", "bun.lockb", "bun install", "bun run test"},
	{"npm", "package-lock.json", "npm ci", "npm test"},
	{"npm", "npm-shrinkwrap.json", "npm ci", "npm test"},
	{"npm", "", "npm install", "npm test"},
}

// nodeDownloads are packages whose installation asks other hosts, with their presets.
var nodeDownloads = map[string]string{"playwright": "playwright", "@playwright/test": "playwright"}

func node(p *project, f *Found) {
	if p.has("deno.json") || p.has("deno.jsonc") {
		f.find(p, "deno.json", "Deno", "preset deno")
		f.preset("deno", "deno.json")
		f.program("deno")
		f.runs(p, "", "deno test")
	}
	if !p.has("package.json") {
		return
	}
	var pkg packageJSON
	_ = json.Unmarshal([]byte(p.read("package.json")), &pkg)
	m := nodeManagers[len(nodeManagers)-1]
	wanted, _, _ := strings.Cut(string(pkg.PackageManager), "@")
	for _, x := range nodeManagers {
		if x.lock != "" && p.has(x.lock) {
			m = x
			break
		}
		if x.lock == "" || x.name == wanted && x.name != "npm" {
			m = x
			m.lock = ""
			break
		}
	}
	file, what := "package.json", "Node.js with "+m.name
	if m.lock != "" {
		file += ", " + m.lock
	}
	if len(pkg.Workspaces) > 0 || p.has("pnpm-workspace.yaml") {
		what += ", with workspaces"
	}
	f.find(p, file, what, "preset npm")
	f.preset("npm", "for "+m.install)
	f.cache("package.json", m.name)
	f.program("node", m.name)
	f.image("node:lts")
	f.env("NPM_CONFIG_UPDATE_NOTIFIER", "false", "")
	test := m.test
	if _, ok := pkg.Scripts["test"]; !ok {
		test = ""
	}
	f.runs(p, m.install, test)
	for _, deps := range []map[string]json.RawMessage{pkg.Dependencies, pkg.DevDependencies} {
		for name, preset := range nodeDownloads {
			line := presetLine(preset)
			if _, ok := deps[name]; ok && !slices.ContainsFunc(f.Suggestions, func(s Suggestion) bool { return s.Line == line }) {
				f.suggest("allow", line, "where its browsers are downloaded inside")
			}
		}
	}
}
