package diff

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lock"
	"github.com/llmdo/workshop/workshop"
)

// baseFile is what the edits of the tables begin with.
const baseFile = `workshop:
  name: w
  version: 1.0.0
  container:
    image: worker:1.4
    network:
      mode: restricted
      allow:
        - api.example.org
        - "**.example.net:443"
        - {host: db.internal, port: 5432, private: true}
        - {cidr: 10.20.0.0/16, port: 22}
        - {host: up.example.org, upload: 5M/h}
        - preset: go
      deny: [bad.example.net, "*.worse.example.net"]
      dns: [198.51.100.53]
      room: own
    mounts:
      - ./src:/workspace/src
      - ./out:/workspace/out:rw
      - {source: ./data, target: /data, exclude: ["**/*.pem", .env]}
      - ./empty:/workspace/src/keys
    resources: {memory: 1G, cpu: 1, pids: 256}
    tmp: 256M
    env: {LANG: C.UTF-8, TOKEN_FILE: "${TOKEN_FILE}"}
    secrets: [{name: token, env: TOKEN}, {name: ca, file: ./ca.pem}]
    caches: [go]
    git_author: none
  workers:
    - name: a
      container: {secrets: [token], caches: [go], ports: ["8080:8080"]}
    - name: b
      tools: [read_file, "shell(git:*)", mcp__hub__list]
      instructions: |
        Look at it.
      container: {network: none, mounts: [], secrets: []}
  approvals:
    default: ask
    rules:
      - {tool: shell, match: git status, approval: auto}
      - {tool: shell, match: git log, approval: auto}
      - {tool: shell, match: git push, approval: deny}
      - {tool: read_file, approval: auto}
  mcp:
    hub: {command: hub, args: [stdio]}
  models:
    services:
      tiny: {image: host, file: tiny.gguf, sha256: abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789, context: 2048}
`

// baseLock pins the image.
var baseLock = string((&lock.Lock{Images: map[string]lock.Image{"worker:1.4": {Digest: "sha256:" + strings.Repeat("1", 64)}}}).Render())

// baseWorker is the file of the worker a.
const baseWorker = "---\nname: a\ndescription: Does a\ntools: Read, Grep, Bash(git:*)\n---\nDo a.\n"

// edit replaces texts, in pairs, in the files of base.
func edit(t testing.TB, files fstest.MapFS, pairs []string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	for name, f := range files {
		out[name] = &fstest.MapFile{Data: f.Data}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		done := false
		for _, name := range slices.SortedFunc(maps.Keys(out), func(a, b string) int { return cmp.Or(strings.Compare(path.Ext(b), path.Ext(a)), strings.Compare(b, a)) }) { // workshop.yaml first
			f := out[name]
			if text := string(f.Data); pairs[i] != "" && strings.Contains(text, pairs[i]) && !done {
				out[name] = &fstest.MapFile{Data: []byte(strings.Replace(text, pairs[i], pairs[i+1], 1))}
				done = true
			}
		}
		if !done {
			t.Fatalf("no %q in the files", pairs[i])
		}
	}
	return out
}

func files() fstest.MapFS {
	return fstest.MapFS{
		"workshop.yaml": {Data: []byte(baseFile)}, "workers/a.md": {Data: []byte(baseWorker)},
		"workshop.lock": {Data: []byte(baseLock)}, ".env": {Data: []byte("TOKEN_FILE=/x\n")},
		".github/workflows/gate.yml": {Data: []byte("run: workshop diff --base origin/main --fail-on widened\n")},
		".github/CODEOWNERS":         {Data: []byte("* @all\n/workshop.yaml  @security\n/workshop.lock @security\n")},
	}
}

func read(t testing.TB, fsys fstest.MapFS) Side {
	t.Helper()
	s, list := Read(t.Context(), fsys, "workshop.yaml", "", nil)
	if list.HasErrors() {
		t.Fatal(list)
	}
	return s
}

func rowsOf(t testing.TB, base, head fstest.MapFS) []Row {
	t.Helper()
	rows, err := Compare(t.Context(), read(t, base), read(t, head))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// rowText is a row in one line, for tests.
func rowText(r Row) string {
	place := func(r diag.Range) string {
		if r.Start.Line == 0 {
			return r.Filename
		}
		return fmt.Sprintf("%s:%d", r.Filename, r.Start.Line)
	}
	return fmt.Sprintf("%s %s %s: %s -> %s [%s < %s]", r.State, strings.Join(r.Workers, ","), r.Surface, r.Before, r.After, place(r.At), place(r.Was))
}

func texts(rows []Row) (out []string) {
	for _, r := range rows {
		out = append(out, rowText(r))
	}
	return out
}

// Edits that change nothing that is granted: no row.
func TestNeutral(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
	}{
		{"nothing", nil},
		{"a comment", []string{"  name: w\n", "  name: w # the name\n"}},
		{"a blank line", []string{"  version:", "\n  version:"}},
		{"the version", []string{"1.0.0", "1.1.0"}},
		{"a description", []string{"  version:", "  description: about\n  version:"}},
		{"the name of the project", []string{"name: w\n", "name: other\n"}},
		{"order of allow", []string{"        - api.example.org\n", "", "        - preset: go\n", "        - preset: go\n        - api.example.org\n"}},
		{"order of deny", []string{`[bad.example.net, "*.worse.example.net"]`, `["*.worse.example.net", bad.example.net]`}},
		{"order of mounts", []string{"      - ./src:/workspace/src\n", "", "      - ./out:/workspace/out:rw\n", "      - ./out:/workspace/out:rw\n      - ./src:/workspace/src\n"}},
		{"order of keys", []string{"    tmp: 256M\n", "", "    image: worker:1.4\n", "    tmp: 256M\n    image: worker:1.4\n"}},
		{"order of workers' tools", []string{`[read_file, "shell(git:*)", mcp__hub__list]`, `[mcp__hub__list, read_file, "shell(git:*)"]`}},
		{"order of tools in a file", []string{"Read, Grep, Bash(git:*)", "Bash(git:*), Grep, Read"}},
		{"order of rules about different tools", []string{"      - {tool: read_file, approval: auto}\n", "", "    rules:\n", "    rules:\n      - {tool: read_file, approval: auto}\n"}},
		{"order of rules that decide alike", []string{"match: git status", "match: git x", "match: git log", "match: git status", "match: git x", "match: git log"}},
		{"a default written out: mode of a mount", []string{"./src:/workspace/src\n", "./src:/workspace/src:ro\n"}},
		{"a default written out: ports", []string{"- api.example.org\n", "- {host: api.example.org, port: [80, 443]}\n"}},
		{"a default written out: scratch", []string{"    tmp: 256M\n", "    tmp: 256M\n    scratch: 256M\n    shm: 64M\n"}},
		{"a default written out: workdir, pull", []string{"    tmp: 256M\n", "    tmp: 256M\n    workdir: /workspace\n    pull: missing\n"}},
		{"a default written out: isolation", []string{"  version:", "  isolation: auto\n  version:"}},
		{"a default written out: timeout", []string{"pids: 256}", "pids: 256, timeout: 10m}"}},
		{"a default written out: address of a port", []string{`"8080:8080"`, `"127.0.0.1:8080:8080"`}},
		{"a default written out: git_author", []string{"    git_author: none\n", ""}},
		{"the long form of a port", []string{`"8080:8080"`, "{target: 8080}"}},
		{"the long form of a mount", []string{"./out:/workspace/out:rw", "{name: output, source: out, target: /workspace/out, mode: rw}"}},
		{"the short form of a mount", []string{"./src:/workspace/src\n", "././src/:/workspace/src\n"}},
		{"the name of a mount", []string{"{source: ./data,", "{name: data, source: ./data,"}},
		{"a preset replaced by its hosts", []string{"- preset: go\n", "- proxy.golang.org:443\n        - sum.golang.org:443\n"}},
		{"units", []string{"memory: 1G", "memory: 1024M", "tmp: 256M", "tmp: 268435456"}},
		{"units of a budget", []string{"5M/h", "5120K/h"}},
		{"quotes", []string{"image: worker:1.4", "image: \"worker:1.4\""}},
		{"upper case of a host", []string{"- api.example.org\n", "- API.example.org\n"}},
		{"a line that another covers", []string{"- api.example.org\n", "- api.example.org\n        - x.example.net:443\n"}},
		{"a line twice", []string{"- api.example.org\n", "- api.example.org\n        - api.example.org:443\n"}},
		{"a port range for a list", []string{"{cidr: 10.20.0.0/16, port: 22}", "{cidr: 10.20.0.0/16, port: [22]}"}},
		{"a range in two halves", []string{"{cidr: 10.20.0.0/16, port: 22}", "{cidr: 10.20.0.0/17, port: 22}\n        - {cidr: 10.20.128.0/17, port: 22}"}},
		{"a deny that another covers", []string{"[bad.example.net,", "[bad.example.net, x.worse.example.net,"}},
		{"a deny about nothing that is allowed", []string{"[bad.example.net,", "[bad.example.net, {host: bad.example.com, port: 9},"}},
		{"a line that is denied", []string{"- api.example.org\n", "- api.example.org\n        - bad.example.net\n"}},
		{"a mount that another covers", []string{"- ./out:/workspace/out:rw\n", "- ./out:/workspace/out:rw\n      - ./out/x:/workspace/out/x:rw\n"}},
		{"patterns in another order", []string{`["**/*.pem", .env]`, `[.env, "**/*.pem"]`}},
		{"the name of a secret", []string{"{name: token, env: TOKEN}", "{name: key, env: TOKEN}", "secrets: [token]", "secrets: [key]"}},
		{"a secret that no worker has", []string{"{name: ca, file: ./ca.pem}", "{name: ca, file: ./ca.pem}, {name: more, env: MORE}"}},
		{"a known cache with its path", []string{"caches: [go]\n", "caches: [{name: go, target: /caches/go}]\n"}},
		{"the effective container written out", []string{"{secrets: [token], caches", "{image: \"worker:1.4\", secrets: [token], caches"}},
		{"moved from the workshop to the workers", []string{"    tmp: 256M\n", "    tmp: 512M\n", "{secrets: [token], ca", "{tmp: 256M, secrets: [token], ca", "{network: none", "{tmp: 256M, network: none"}},
		{"a rule that says what the default says", []string{"    rules:\n", "    rules:\n      - {tool: write_file, approval: ask}\n"}},
		{"a rule that another covers", []string{"{tool: read_file, approval: auto}\n", "{tool: read_file, approval: auto}\n      - {tool: read_file, match: src/**, approval: deny}\n"}},
		{"an MCP server that nobody lists", []string{"  mcp:\n", "  mcp:\n    spare: {command: spare}\n"}},
		{"another word for the tools", []string{"tools: Read, Grep,", "allowed-tools: Read, Grep,"}},
		{"file: written out", []string{"    - name: a\n", "    - name: a\n      file: workers/a.md\n"}},
		{"a worker's name", []string{"    - name: b\n", "    - name: c\n"}},
		{"blank lines at the end of a prompt", []string{"Do a.\n", "Do a.\n\n\n"}},
		{"more of CODEOWNERS", []string{"* @all\n", "* @all\n/docs @docs\n"}},
		{"a lock that changed", []string{"can: []\n", "can: [a b c]\n"}},
		{"a tag replaced by its digest", []string{"image: worker:1.4", "image: worker@sha256:" + strings.Repeat("1", 64)}},
		{"a tag with its digest", []string{"image: worker:1.4", "image: worker:1.4@sha256:" + strings.Repeat("1", 64)}},
		{"a short form of the network", []string{"network: none", "network: {mode: none}"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if rows := rowsOf(t, files(), edit(t, files(), tt.pairs)); len(rows) > 0 {
				t.Errorf("got\n%s", strings.Join(texts(rows), "\n"))
			}
		})
	}
}

// widenings are edits that each widen one thing, with the row that they give.
var widenings = []struct {
	name  string
	pairs []string
	want  string
}{
	{"network.mode", []string{"mode: restricted", "mode: open"}, "widened a network.mode: restricted -> open [workshop.yaml:7 < workshop.yaml:7]"},
	{"network.mode from none", []string{"network: none", "network: {mode: restricted, allow: []}"}, "widened b network.mode: none -> restricted [workshop.yaml:36 < workshop.yaml:36]"},
	{"a host", []string{"- api.example.org\n", "- api.example.org\n        - evil.example.com\n"}, "widened a network.allow:  -> evil.example.com tcp/80,443 [workshop.yaml:10 < workshop.yaml:7]"},
	{"a wildcard", []string{"- api.example.org\n", "- \"*.example.org\"\n        - api.example.org\n"}, "widened a network.allow: "},
	{"a port", []string{"- api.example.org\n", "- {host: api.example.org, port: [80, 443, 8443]}\n"}, "widened a network.allow: api.example.org tcp/80,443 -> api.example.org tcp/80,443,8443 [workshop.yaml:9 < workshop.yaml:9]"},
	{"a range", []string{"10.20.0.0/16", "10.0.0.0/8"}, "widened a network.allow: "},
	{"private", []string{"- api.example.org\n", "- {host: api.example.org, private: true}\n"}, "widened a network.allow: api.example.org tcp/80,443 -> api.example.org tcp/80,443 private [workshop.yaml:9 < workshop.yaml:9]"},
	{"ech", []string{"- api.example.org\n", "- {host: api.example.org, ech: allow}\n"}, "widened a network.allow: api.example.org tcp/80,443 -> api.example.org tcp/80,443 ech [workshop.yaml:9 < workshop.yaml:9]"},
	{"a budget", []string{"5M/h", "6M/h"}, "widened a network.allow: up.example.org tcp/80,443 upload 5M/h -> up.example.org tcp/80,443 upload 6M/h [workshop.yaml:13 < workshop.yaml:13]"},
	{"a preset", []string{"- preset: go\n", "- preset: go\n        - preset: npm\n"}, "widened a network.allow: "},
	{"a resolver over HTTPS below a wildcard", []string{"\"**.example.net:443\"", "\"**.example.net:443\"\n        - dns.google"}, "widened a network.allow: "},
	{"a deny", []string{"bad.example.net, ", ""}, "widened a network.deny: bad.example.net tcp ->  [workshop.yaml:7 < workshop.yaml:15]"},
	{"a deny of fewer names", []string{"\"*.worse.example.net\"", "x.worse.example.net"}, "widened a network.deny: "},
	{"a room", []string{"room: own", "room: shared"}, "widened a network.room: own -> shared [workshop.yaml:17 < workshop.yaml:17]"},
	{"a mount", []string{"- ./out:/", "- ./other:/other\n      - ./out:/"}, "widened a mounts:  -> ./other at /other ro [workshop.yaml:20 < workshop.yaml:5]"},
	{"a mount's mode", []string{"./src:/workspace/src\n", "./src:/workspace/src:rw\n"}, "widened a mounts: ./src at /workspace/src ro -> ./src at /workspace/src rw [workshop.yaml:19 < workshop.yaml:19]"},
	{"a mount further up", []string{"./out:/workspace/out:rw", "./:/workspace/out:rw"}, "widened a mounts: "},
	{"git: rw", []string{"./out:/workspace/out:rw", "{source: ./out, target: /workspace/out, mode: rw, git: rw}"}, "widened a mounts: "},
	{"sockets", []string{"./out:/workspace/out:rw", "{source: ./out, target: /workspace/out, mode: rw, sockets: allow}"}, "widened a mounts: "},
	{"outside_project", []string{"./out:/workspace/out:rw", "{source: ./out, target: /workspace/out, mode: rw, outside_project: true}"}, "widened a mounts: "},
	{"a pattern less", []string{`["**/*.pem", .env]`, `["**/*.pem"]`}, "widened a mounts: "},
	{"a directory in place of a copy", []string{`, exclude: ["**/*.pem", .env]`, ""}, "widened a mounts: "},
	{"what a mount covers", []string{"      - ./empty:/workspace/src/keys\n", ""}, "widened a mounts: ./empty at /workspace/src/keys ro over src/keys -> ./src at /workspace/src ro, with src/keys in it [workshop.yaml:19 < workshop.yaml:22]"},
	{"memory", []string{"memory: 1G", "memory: 2G"}, "widened a,b resources.memory: 1G -> 2G [workshop.yaml:23 < workshop.yaml:23]"},
	{"a limit that is gone", []string{"    tmp: 256M\n", ""}, "widened a,b tmp: "},
	{"cpu", []string{"cpu: 1,", "cpu: 2,"}, "widened a,b resources.cpu: 1 -> 2 [workshop.yaml:23 < workshop.yaml:23]"},
	{"pids", []string{"pids: 256", "pids: 512"}, "widened a,b resources.pids: "},
	{"timeout", []string{"pids: 256", "pids: 256, timeout: 1h"}, "widened a,b resources.timeout: "},
	{"shm", []string{"    tmp: 256M\n", "    tmp: 256M\n    shm: 1G\n"}, "widened a,b shm: "},
	{"scratch", []string{"    tmp: 256M\n", "    tmp: 256M\n    scratch: 1G\n"}, "widened a,b scratch: "},
	{"home", []string{"    tmp: 256M\n", "    tmp: 256M\n    home: 1G\n"}, "widened a,b home: "},
	{"a variable of the host", []string{"LANG: C.UTF-8", "LANG: C.UTF-8, KEY: \"${AWS_KEY}\""}, "widened a,b env.KEY:  -> ${AWS_KEY:?} [workshop.yaml:25 < workshop.yaml:5]"},
	{"git_author", []string{"git_author: none", "git_author: host"}, "widened a,b git_author: none -> host [workshop.yaml:28 < workshop.yaml:28]"},
	{"a secret", []string{"secrets: [token]", "secrets: [token, ca]"}, "widened a secrets:  -> ca from ./ca.pem [workshop.yaml:31 < workshop.yaml:30]"},
	{"another variable of a secret", []string{"env: TOKEN}", "env: OTHER}"}, "widened a secrets: token from $TOKEN -> token from $OTHER [workshop.yaml:31 < workshop.yaml:31]"},
	{"a cache", []string{"caches: [go]\n", "caches: [go, npm]\n", "caches: [go], p", "caches: [go, npm], p"}, "widened a caches: "},
	{"what a cache keeps", []string{"caches: [go]\n", "caches: [{name: go, prune_above: 20G}]\n"}, "widened a caches: go -> go prune_above 20G [workshop.yaml:31 < workshop.yaml:31]"},
	{"a port of the host", []string{`"8080:8080"`, `"8080:8080", "9090:9090"`}, "widened a ports: "},
	{"an address of a port", []string{`"8080:8080"`, `"198.51.100.7:8080:8080"`}, "widened a ports: 127.0.0.1:8080->8080 -> 198.51.100.7:8080->8080 [workshop.yaml:31 < workshop.yaml:31]"},
	{"a port of every address", []string{`"8080:8080"`, `{target: 8080, host: 0.0.0.0, expose_beyond_host: true}`}, "widened a ports: "},
	{"a tool", []string{"Read, Grep,", "Read, Write, Grep,"}, "widened a tools:  -> write_file [workers/a.md:4 < workers/a.md:2]"},
	{"a tool's limit", []string{"Bash(git:*)", "Bash"}, "widened a tools: shell git:* -> shell [workers/a.md:4 < workers/a.md:4]"},
	{"an inline tool", []string{"[read_file,", "[read_file, write_file,"}, "widened b tools:  -> write_file [workshop.yaml:33 < workshop.yaml:32]"},
	{"a tool of an MCP server", []string{"mcp__hub__list", "mcp__hub"}, "widened b tools: "},
	{"an MCP server", []string{"  mcp:\n", "  mcp:\n    spare: {command: spare}\n", "Read, Grep,", "Read, mcp__spare, Grep,"}, "widened a tools:  -> mcp__spare (runs spare) [workshop.yaml:45 < workers/a.md:2]"},
	{"a delegate", []string{"tools: Read, Grep, Bash(git:*)\n", "tools: Read, Grep, Bash(git:*)\ndelegates-to: [c]\n", "    - name: b\n", "    - name: c\n      tools: []\n      container: {network: none, mounts: []}\n    - name: b\n"}, "widened a delegates-to:  -> c [workers/a.md:5 < workers/a.md:2]"},
	{"a worker", []string{"    - name: b\n", "    - name: c\n      tools: []\n    - name: b\n"}, "widened c worker:  -> ./src at /workspace/src ro, ./out at /workspace/out rw, ./data at /data copy, ./empty at /workspace/src/keys ro; network restricted to api.example.org, **.example.net:443, db.internal:5432 and 3 more, names by 198.51.100.53 [workshop.yaml:32 < ]"},
	{"a model", []string{"    services:\n", "    services:\n      more: {image: host, file: more.gguf, sha256: bbcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789}\n"}, "widened  models:  -> more: llama.cpp of host, more.gguf with sha256 bbcdef"},
	{"approvals.default", []string{"default: ask", "default: auto"}, "widened  approvals: default ask -> default auto [workshop.yaml:38 < workshop.yaml:38]"},
	{"approvals.default that is gone", []string{"    default: ask\n", ""}, "widened  approvals: default ask -> default ask, but not for reading [workshop.yaml < workshop.yaml:38]"},
	{"a rule", []string{"    rules:\n", "    rules:\n      - {tool: write_file, approval: auto}\n"}, "widened  approvals:  -> write_file: auto [workshop.yaml:40 < workshop.yaml:38]"},
	{"a rule's approval", []string{"match: git push, approval: deny", "match: git push, approval: ask"}, "widened  approvals: shell \"git push\": deny -> shell \"git push\": ask [workshop.yaml:42 < workshop.yaml:42]"},
	{"a rule that is gone", []string{"      - {tool: shell, match: git push, approval: deny}\n", ""}, "widened  approvals: shell \"git push\": deny ->  [workshop.yaml:38 < workshop.yaml:42]"},
	{"a rule before another", []string{"    rules:\n", "    rules:\n      - {tool: shell, match: git, approval: ask}\n"}, "widened  approvals: "},
	{"the gate", []string{"run: workshop diff --base origin/main --fail-on widened\n", "run: true\n"}, "widened  gate: .github/workflows/gate.yml runs the comparison ->  [.github/workflows/gate.yml < .github/workflows/gate.yml]"},
	{"the owners", []string{"/workshop.lock @security\n", ""}, "widened  gate: /workshop.lock @security ->  [.github/CODEOWNERS < .github/CODEOWNERS:3]"},
}

// Each kind of widening alone gives one widened row, with the lines that cause it.
func TestWidened(t *testing.T) {
	for _, tt := range widenings {
		t.Run(tt.name, func(t *testing.T) {
			rows := rowsOf(t, files(), edit(t, files(), tt.pairs))
			widened := slices.DeleteFunc(slices.Clone(rows), func(r Row) bool { return r.State != Widened })
			if tt.name == "a delegate" { // the worker is new, too
				widened = slices.DeleteFunc(widened, func(r Row) bool { return r.Surface == "worker" })
			}
			if len(widened) != 1 || Count(rows, Unknown) > 0 || !strings.HasPrefix(rowText(widened[0]), tt.want) {
				t.Fatalf("got\n%s\nwant one, %s", strings.Join(texts(rows), "\n"), tt.want)
			}
			if widened[0].At.Filename == "" {
				t.Error("no place")
			}
		})
	}
}

// The other way round nothing is widened.
func TestNarrowed(t *testing.T) {
	for _, tt := range widenings {
		t.Run(tt.name, func(t *testing.T) {
			rows := rowsOf(t, edit(t, files(), tt.pairs), files())
			both := []string{"another variable of a secret", "what a mount covers", "a rule before another"} // widens in either direction
			if n := Count(rows, Widened) + Count(rows, Unknown); n > 0 && !slices.Contains(both, tt.name) {
				t.Errorf("got\n%s", strings.Join(texts(rows), "\n"))
			}
			if len(rows) == 0 && !slices.Contains([]string{"the gate", "the owners"}, tt.name) {
				t.Error("no row")
			}
		})
	}
}

// What can't be ordered, and what can't be decided.
func TestChangedAndUnknown(t *testing.T) {
	for _, tt := range []struct {
		name  string
		pairs []string
		want  []string
	}{
		{"image", []string{"worker:1.4", "worker:1.5"}, []string{"changed a,b image: worker:1.4 -> worker:1.5 [workshop.yaml:5 < workshop.yaml:5]"}},
		{"a digest that no lock has", []string{"worker:1.4", "worker:1.4@sha256:" + strings.Repeat("a", 64)}, []string{"changed a,b image: worker:1.4 -> worker:1.4@sha256:" + strings.Repeat("a", 64) + " [workshop.yaml:5 < workshop.yaml:5]"}},
		{"an image by a variable", []string{"worker:1.4", "${IMAGE}"}, []string{"unknown a,b image: worker:1.4 -> ${IMAGE:?} [workshop.yaml:5 < workshop.yaml:5]"}},
		{"build", []string{"image: worker:1.4", "build: ./docker"}, []string{"changed a,b image: worker:1.4 -> build of ./docker ["}},
		{"user", []string{"    tmp:", "    user: \"1000\"\n    tmp:"}, []string{"changed a,b user:  -> 1000 ["}},
		{"workdir", []string{"    tmp:", "    workdir: /x\n    tmp:"}, []string{"changed a,b workdir: /workspace -> /x ["}},
		{"runtime", []string{"    tmp:", "    runtime: crun\n    tmp:"}, []string{"changed a,b runtime:  -> crun ["}},
		{"a kernel of its own", []string{"    tmp:", "    kernel: vm\n    tmp:"}, []string{"narrowed a,b kernel: host -> vm ["}},
		{"pull", []string{"    tmp:", "    pull: always\n    tmp:"}, []string{"changed a,b pull: missing -> always ["}},
		{"isolation", []string{"  version:", "  isolation: docker\n  version:"}, []string{"changed  isolation: auto -> docker ["}},
		{"dns", []string{"[198.51.100.53]", "[198.51.100.54]"}, []string{"changed a,b network.dns: 198.51.100.53 -> 198.51.100.54 ["}},
		{"proxy", []string{"      room: own", "      proxy: http://proxy.example.org:3128\n      room: own"}, []string{"changed a,b network.proxy: "}},
		{"a proxy with a credential", []string{"      room: own", "      proxy: http://proxy.example.org:3128\n      proxy_credential: corp\n      room: own"},
			[]string{"widened a,b network.proxy_credential:  -> corp [", "changed a,b network.proxy: "}},
		{"env", []string{"C.UTF-8", "POSIX"}, []string{"changed a,b env.LANG: C.UTF-8 -> POSIX ["}},
		{"env of the same variable", []string{"\"${TOKEN_FILE}\"", "\"x${TOKEN_FILE}\""}, []string{"unknown a,b env.TOKEN_FILE: ${TOKEN_FILE:?} -> x${TOKEN_FILE:?} ["}},
		{"a default of a variable", []string{"\"${TOKEN_FILE}\"", "\"${TOKEN_FILE:-/etc/x}\""}, []string{"unknown a,b env.TOKEN_FILE: "}},
		{"a target", []string{"./out:/workspace/out:rw", "./out:/other:rw"}, []string{"changed a mounts: ./out at /workspace/out rw -> ./out at /other rw ["}},
		{"a target by a variable", []string{"./out:/workspace/out:rw", "./out:${OUT}:rw"}, []string{"unknown a mounts: ", "narrowed a mounts: ", "narrowed a mounts: ", "narrowed a mounts: "}},
		{"a source by a variable", []string{"./out:/workspace/out:rw", "${OUT}:/workspace/out:rw"}, []string{"unknown a mounts: ", "narrowed a mounts: "}},
		{"a mode by a variable", []string{"./src:/workspace/src\n", "./src:/workspace/src:${MODE:-ro}\n"}, []string{"unknown a mounts: "}},
		{"other patterns", []string{`["**/*.pem", .env]`, `["**/*.pem", ".e*"]`}, []string{"unknown a mounts: "}},
		{"a host by a variable", []string{"- api.example.org\n", "- ${API}\n"}, []string{"unknown a network.allow:  -> ${API:?} tcp/80,443 [", "narrowed a network.allow: "}},
		{"a deny by a variable", []string{"bad.example.net,", "\"${BAD}\","}, []string{"unknown a network.deny: ", "narrowed a network.deny: "}},
		{"a limit by a variable", []string{"memory: 1G", "memory: \"${MEM:-1G}\""}, []string{"unknown a,b resources.memory: 1G -> ${MEM:-1G} ["}},
		{"a port by a variable", []string{`"8080:8080"`, `"${PORT}:8080"`}, []string{"unknown a ports.published.8080: 8080 -> ${PORT:?} ["}},
		{"a published port", []string{`"8080:8080"`, `"8081:8080"`}, []string{"changed a ports.published.8080: 8080 -> 8081 ["}},
		{"an address by a variable", []string{`"8080:8080"`, `"${ADDR}:8080:8080"`}, []string{"unknown a ports: "}},
		{"a cache's target", []string{"caches: [go]\n", "caches: [{name: go, target: /go}]\n"}, []string{"changed a caches.target.go: /caches/go -> /go ["}},
		{"a prompt", []string{"Do a.", "Do a, and b."}, []string{"changed a instructions: Do a. -> Do a, and b. [workers/a.md:"}},
		{"an inline prompt", []string{"Look at it.", "Look away."}, []string{"changed b instructions: "}},
		{"a description", []string{"Does a", "Does all"}, []string{"changed a description: Does a -> Does all ["}},
		{"a model", []string{"description: Does a\n", "description: Does a\nmodel: large\n"}, []string{"changed a model:  -> large ["}},
		{"a result type", []string{"description: Does a\n", "description: Does a\nresult_type: {type: string}\n"}, []string{"changed a result_type: "}},
		{"an MCP server's arguments", []string{"args: [stdio]", "args: [stdio, --write]"}, []string{"changed b mcp: hub: hub stdio -> hub: hub stdio --write ["}},
		{"a model's file", []string{"sha256: abc", "sha256: bbc"}, []string{"changed  models: tiny: llama.cpp of host, tiny.gguf with sha256 abcdef"}},
		{"a model by a variable", []string{"context: 2048", "context: \"${CTX:-2048}\""}, []string{"unknown  models: tiny: "}},
		{"the gate's text", []string{"--fail-on widened", ""}, []string{"changed  gate: "}},
		{"a value of .env", []string{"TOKEN_FILE=/x", "TOKEN_FILE=/y"}, []string{"unknown  .env: TOKEN_FILE=… -> TOKEN_FILE=…, another value [.env < .env]"}},
		{"a rule at another place", []string{"{tool: shell, match: git status, approval: auto}", "{tool: shell, match: git push, approval: deny}", "- {tool: shell, match: git push, approval: deny}\n      - {tool: read", "- {tool: shell, match: git status, approval: auto}\n      - {tool: read"}, []string{"narrowed  approvals: shell \"git push\": deny -> shell \"git push\": deny, at another place ["}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := texts(rowsOf(t, files(), edit(t, files(), tt.pairs)))
			if len(rows) != len(tt.want) {
				t.Fatalf("got\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(tt.want, "\n"))
			}
			for i := range rows {
				if !strings.HasPrefix(rows[i], tt.want[i]) {
					t.Errorf("got  %s\nwant %s", rows[i], tt.want[i])
				}
			}
		})
	}
}

// A kernel nearer to the machine is a widening (B13).
func TestLessOfAKernel(t *testing.T) {
	vm := edit(t, files(), []string{"    tmp:", "    kernel: vm\n    tmp:"})
	rows := texts(rowsOf(t, vm, edit(t, files(), []string{"    tmp:", "    kernel: sandboxed\n    tmp:"})))
	if len(rows) != 1 || !strings.HasPrefix(rows[0], "widened a,b kernel: vm -> sandboxed [") {
		t.Errorf("got %q", rows)
	}
	rows = texts(rowsOf(t, vm, files()))
	if len(rows) != 1 || !strings.HasPrefix(rows[0], "widened a,b kernel: vm -> host [") {
		t.Errorf("without the key: got %q", rows)
	}
}

// Every key of workshop.yaml has its comparison.
func TestSurfaces(t *testing.T) {
	keys := workshop.SchemaKeys()
	for i, s := range surfaces {
		given := 0
		for _, set := range []bool{s.of != nil, s.by != "", s.neutral != ""} {
			if set {
				given++
			}
		}
		if given != 1 {
			t.Errorf("%s: want exactly one of of, by and neutral", s.key)
		}
		if i >= len(keys) || keys[i] != s.key {
			t.Fatalf("entry %d is %s; want the keys in the order of the reference: %s", i, s.key, cmp.Or(strings.Join(keys[min(i, len(keys)):min(i+1, len(keys))], ""), "no more"))
		}
	}
	for _, k := range keys[len(surfaces):] {
		t.Errorf("%s has no comparison: say in surfaces how diff compares it", k)
	}
}

// Files that are gone.
func TestGone(t *testing.T) {
	without := func(names ...string) fstest.MapFS {
		out := edit(t, files(), nil)
		for _, n := range names {
			delete(out, n)
		}
		return out
	}
	for _, tt := range []struct {
		name       string
		base, head fstest.MapFS
		want       string
	}{
		{"the lock", files(), without("workshop.lock"), "widened  lock: workshop.lock ->  [workshop.lock < workshop.lock]"},
		{"the workshop", files(), without("workshop.yaml"), "widened  workshop: workshop.yaml ->  ["},
		{"the gate", files(), without(".github/workflows/gate.yml"), "widened  gate: "},
		{"no workshop before", without("workshop.yaml"), files(), "widened  workshop:  -> workshop.yaml ["},
		{"never one", without("workshop.yaml"), without("workshop.yaml"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := texts(rowsOf(t, tt.base, tt.head))
			if tt.want == "" && len(rows) > 0 || tt.want != "" && (len(rows) == 0 || !strings.HasPrefix(rows[0], tt.want)) {
				t.Errorf("got\n%s\nwant %s", strings.Join(rows, "\n"), tt.want)
			}
		})
	}
}

// What a variable may be is never taken for the narrower case.
func TestVariablesAreNotGuessed(t *testing.T) {
	for _, tt := range []struct {
		name         string
		before, with []string
		want         string
	}{
		{"a longer line that is gone", []string{"- api.example.org\n", "- {host: \"**.x.example\", private: true}\n        - \"${PLAIN}\"\n"}, []string{"        - \"${PLAIN}\"\n", ""}, "unknown a network.allow: ${PLAIN:?} tcp/80,443 -> **.x.example tcp/80,443 private ["},
		{"a mount over another that is gone", []string{"./empty:/workspace/src/keys", "./empty:${OVER}"}, []string{"      - ./empty:${OVER}\n", ""}, "unknown a mounts: "},
		{"a mount that lay over two others", []string{"      - ./src:/workspace/src\n", "      - ./:/w\n      - ./a:/w/a:rw\n      - ./empty:/w/a/b\n      - ./src:/workspace/src\n"}, []string{"./empty:/w/a/b", "./a/b:/w/a/b"}, "widened a mounts: "},
		{"the gate, with a comment in its place", nil, []string{"run: workshop diff", "# run: workshop diff"}, "widened  gate: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := edit(t, files(), tt.before)
			rows := texts(rowsOf(t, base, edit(t, base, tt.with)))
			if len(rows) == 0 || !strings.HasPrefix(rows[0], tt.want) {
				t.Errorf("got\n%s\nwant %s", strings.Join(rows, "\n"), tt.want)
			}
		})
	}
}
