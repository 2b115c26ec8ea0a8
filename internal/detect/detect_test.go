package detect

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/workshop"
)

// repository is a file system of these texts.
func repository(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		if name, ok := strings.CutSuffix(name, "/"); ok {
			m[name] = &fstest.MapFile{Mode: fs.ModeDir}
			continue
		}
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// summary is what was found, in a few words.
func summary(f Found) string {
	var parts []string
	add := func(what string, list []string) {
		if len(list) > 0 {
			parts = append(parts, what+" "+strings.Join(list, ","))
		}
	}
	var presets, caches, found, agents, suggested []string
	for _, r := range f.Presets {
		presets = append(presets, r.Name)
	}
	for _, r := range f.Caches {
		caches = append(caches, r.Name)
	}
	for _, x := range f.Findings {
		found = append(found, x.Path+"="+x.What)
	}
	for _, a := range f.Agents {
		agents = append(agents, a.Name)
	}
	for _, s := range f.Suggestions {
		suggested = append(suggested, s.Line)
	}
	add("found", found)
	add("presets", presets)
	add("caches", caches)
	add("programs", f.Programs)
	add("agents", agents)
	add("suggested", suggested)
	if f.Setup != "" {
		parts = append(parts, "setup "+f.Setup)
	}
	if f.Test != "" {
		parts = append(parts, "test "+f.Test)
	}
	return strings.Join(parts, "\n")
}

func TestLook(t *testing.T) {
	test := `{"scripts": {"test": "node --test"}}`
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing", map[string]string{"README": ""}, ""},
		{"npm", map[string]string{"package.json": test, "package-lock.json": "{}"},
			"found package.json, package-lock.json=Node.js with npm\npresets npm\ncaches npm\nprograms node,npm\nsetup npm ci\ntest npm test"},
		{"npm without a lockfile or tests", map[string]string{"package.json": "{}"},
			"found package.json=Node.js with npm\npresets npm\ncaches npm\nprograms node,npm\nsetup npm install"},
		{"pnpm, a workspace", map[string]string{"package.json": test, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": ""},
			"found package.json, pnpm-lock.yaml=Node.js with pnpm, with workspaces\npresets npm\ncaches pnpm\nprograms node,pnpm\nsetup pnpm install\ntest pnpm test"},
		{"yarn", map[string]string{"package.json": test, "yarn.lock": ""},
			"found package.json, yarn.lock=Node.js with yarn\npresets npm\ncaches yarn\nprograms node,yarn\nsetup yarn install\ntest yarn test"},
		{"yarn by packageManager", map[string]string{"package.json": `{"packageManager": "yarn@4.1.0"}`},
			"found package.json=Node.js with yarn\npresets npm\ncaches yarn\nprograms node,yarn\nsetup yarn install"},
		{"bun", map[string]string{"package.json": test, "bun.lock": ""},
			"found package.json, bun.lock=Node.js with bun\npresets npm\ncaches bun\nprograms node,bun\nsetup bun install\ntest bun run test"},
		{"browsers", map[string]string{"package.json": `{"dependencies": {"playwright": "1"}, "devDependencies": {"@playwright/test": "1"}}`},
			"found package.json=Node.js with npm\npresets npm\ncaches npm\nprograms node,npm\nsuggested preset: playwright\nsetup npm install"},
		{"not JSON, other types", map[string]string{"package.json": `{"packageManager": 3, "scripts": []`},
			"found package.json=Node.js with npm\npresets npm\ncaches npm\nprograms node,npm\nsetup npm install"},
		{"deno", map[string]string{"deno.json": "{}"}, "found deno.json=Deno\npresets deno\nprograms deno\ntest deno test"},
		{"go", map[string]string{"go.mod": "module x"}, "found go.mod=Go\npresets go\ncaches go,go-build\nprograms go\ntest go test ./..."},
		{"go.work", map[string]string{"go.work": "", "a/go.mod": "", "b/go.mod": ""},
			"found go.work=Go, with a workspace of modules\npresets go\ncaches go,go-build\nprograms go"},
		{"pip", map[string]string{"requirements.txt": "pytest\n"},
			"found requirements.txt=Python with pip\npresets pypi\ncaches pip\nprograms python3\nsetup python3 -m venv .venv && .venv/bin/pip install -r requirements.txt\ntest .venv/bin/pytest"},
		{"pyproject", map[string]string{"pyproject.toml": "[project]\nname = \"x\"\n"},
			"found pyproject.toml=Python with pip\npresets pypi\ncaches pip\nprograms python3\nsetup python3 -m venv .venv && .venv/bin/pip install -e .\ntest .venv/bin/python -m unittest"},
		{"uv", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n", "uv.lock": ""},
			"found pyproject.toml=Python with uv\npresets pypi\ncaches uv\nprograms python3,uv\nsetup uv sync\ntest uv run pytest"},
		{"poetry", map[string]string{"pyproject.toml": "[tool.poetry]\n", "tests/conftest.py": ""},
			"found pyproject.toml=Python with poetry\npresets pypi\ncaches poetry\nprograms python3,poetry\nsetup poetry install\ntest poetry run pytest"},
		{"cargo", map[string]string{"Cargo.toml": "[workspace]\n"}, "found Cargo.toml=Rust, with a workspace\npresets cargo\ncaches cargo\nprograms cargo,rustc\ntest cargo test"},
		{"bundler", map[string]string{"Gemfile": "", "spec/a_spec.rb": ""},
			"found Gemfile=Ruby with Bundler\npresets rubygems\ncaches bundler\nprograms ruby,bundle\nsetup bundle install\ntest bundle exec rspec"},
		{"maven", map[string]string{"pom.xml": ""}, "found pom.xml=Java with Maven\npresets maven\ncaches maven\nprograms mvn,java\ntest mvn test"},
		{"gradle", map[string]string{"build.gradle.kts": "", "gradlew": ""},
			"found build.gradle.kts=Java with Gradle\npresets gradle,maven\ncaches gradle\nprograms java\ntest ./gradlew test"},
		{"composer", map[string]string{"composer.json": "{}", "phpunit.xml": ""},
			"found composer.json=PHP with Composer\npresets packagist\ncaches composer\nprograms php,composer\nsetup composer install\ntest vendor/bin/phpunit"},
		{"make", map[string]string{"Makefile": "all:\ncheck: all\n\t./a\n"}, "found Makefile=make\nprograms make\ntest make check"},
		{"a variable called test", map[string]string{"Makefile": "test := 1\n"}, "found Makefile=make\nprograms make"},
		{"go with make", map[string]string{"go.mod": "", "Makefile": "test:\n"},
			"found go.mod=Go,Makefile=make\npresets go\ncaches go,go-build\nprograms go,make\ntest go test ./..."},
		{"two in the root", map[string]string{"go.mod": "", "package.json": test},
			"found package.json=Node.js with npm,go.mod=Go\npresets npm,go\ncaches npm,go,go-build\nprograms node,npm,go\nsetup npm install\ntest npm test"},
		{"parts without a root", map[string]string{"web/package.json": test, "api/go.mod": "", "examples/x/Cargo.toml": "", ".hidden/Gemfile": ""},
			"found api/go.mod=Go,web/package.json=Node.js with npm\npresets go,npm\ncaches go,go-build,npm\nprograms go,node,npm"},
		{"a folder of documentation grants nothing", map[string]string{"go.mod": "", "docs/package.json": test, "docs/site/package.json": test},
			"found go.mod=Go\npresets go\ncaches go,go-build\nprograms go\nsuggested preset: npm\ntest go test ./..."},
		{"agents", map[string]string{".claude/agents/reviewer.md": "", ".claude/agents/Not A Name.md": "", "workers/dev.md": "", "workers/notes.txt": ""},
			"found workers/dev.md=a worker,.claude/agents/reviewer.md=a worker\nagents dev,reviewer"},
		{"git", map[string]string{".git/HEAD": ""}, "found .git=a git repository"},
		{"a worktree", map[string]string{".git": "gitdir: /r/.git/worktrees/a\n"}, "found .git=a linked git worktree"},
		{"a submodule", map[string]string{".git": "gitdir: ../.git/modules/a\n"}, "found .git=a git submodule"},
		{"what init --from reads", map[string]string{".devcontainer/devcontainer.json": "", ".mcp.json": "", "compose.yaml": "", "Dockerfile": "", ".env": ""},
			"found .devcontainer/devcontainer.json=a development container,.mcp.json=MCP servers,compose.yaml=a Compose project,Dockerfile=an image,.env=variables\nsuggested build: {context: .}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Look(repository(tt.files))
			if diff := cmp.Diff(tt.want, summary(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, r := range got.Caches {
				if !slices.ContainsFunc(workshop.KnownCaches(), func(k workshop.KnownCache) bool { return k.Name == r.Name }) {
					t.Errorf("there is no cache %s", r.Name)
				}
			}
			for _, r := range got.Presets {
				if !presets.Has(r.Name) {
					t.Errorf("there is no preset %s", r.Name)
				}
			}
		})
	}
}

// reads counts what is opened of a file system.
type reads struct {
	fs.FS
	n int
}

func (r *reads) Open(name string) (fs.File, error) {
	r.n++
	return r.FS.Open(name)
}

// A repository of any size and shape costs a bounded number of reads, and names that a
// person can't read are not shown (B60).
func TestBounds(t *testing.T) {
	files := map[string]string{"package.json": strings.Repeat(" ", maxFile+1), ".git": strings.Repeat("x", maxFile+1)}
	for i := range 600 {
		files[fmt.Sprintf("d%03d/e/package.json", i)] = "{}"
		files[fmt.Sprintf(".claude/agents/a%03d.md", i)] = ""
	}
	files[".claude/agents/a\x1b[2J.md"] = ""
	r := &reads{FS: repository(files)}
	f := Look(r)
	if r.n > 2*maxReads {
		t.Errorf("%d files opened, want at most %d", r.n, 2*maxReads)
	}
	if len(f.Agents) != maxAgents {
		t.Errorf("%d agents, want %d", len(f.Agents), maxAgents)
	}
	for _, x := range f.Findings {
		if strings.ContainsRune(x.Path, '\x1b') {
			t.Errorf("found %q", x.Path)
		}
	}
	if got := f.Findings[0].What; got != "Node.js with npm" {
		t.Errorf("a package.json that is too large is %q", got)
	}
}

// FuzzLook: no text of a repository crashes a detector, and what it finds are names of
// our own lists.
func FuzzLook(f *testing.F) {
	f.Add(`{"packageManager": "pnpm@9", "scripts": {"test": "x"}}`, "[tool.poetry]\npytest", "test:\n", "gitdir: /x/.git/worktrees/y")
	f.Fuzz(func(t *testing.T, pkg, pyproject, makefile, git string) {
		found := Look(repository(map[string]string{"package.json": pkg, "pyproject.toml": pyproject, "Makefile": makefile, ".git": git}))
		for _, r := range found.Presets {
			if r.Name != "npm" && r.Name != "pypi" {
				t.Errorf("preset %q", r.Name)
			}
		}
		for _, s := range found.Suggestions {
			if s.Line != "preset: playwright" {
				t.Errorf("suggestion %q", s.Line)
			}
		}
	})
}
