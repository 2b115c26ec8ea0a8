//go:build unix

package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/hostpath"
)

// machine makes files and links below a directory: "PATH" is a program, "PATH=TEXT" a
// file, "PATH -> TO" a link.
func machine(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, f := range files {
		name, to, link := strings.Cut(f, " -> ")
		name, text, plain := strings.Cut(name, "=")
		file := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(file), 0o755)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(strings.ReplaceAll(to, "ROOT", root), file)
		case plain:
			err = os.WriteFile(file, []byte(strings.ReplaceAll(text, "ROOT", root)), 0o755)
		default:
			err = os.WriteFile(file, []byte("\x7fELF"), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name    string
		files   []string
		path    string // directories, separated by blanks
		env     map[string]string
		program string
		mounts  string // blank-separated; "" for none
		dir     string
		why     string // part of it
	}{
		{name: "nvm", files: []string{"h/.nvm/versions/node/v22/bin/node"}, path: "h/.nvm/versions/node/v22/bin", program: "node",
			mounts: "h/.nvm/versions/node/v22", dir: "h/.nvm/versions/node/v22/bin"},
		{name: "nvm's npm is a link into it", files: []string{"h/.nvm/versions/node/v22/lib/node_modules/npm/bin/npm-cli.js=#!/usr/bin/env node", "h/.nvm/versions/node/v22/bin/npm -> ../lib/node_modules/npm/bin/npm-cli.js"},
			path: "h/.nvm/versions/node/v22/bin", program: "npm", mounts: "h/.nvm/versions/node/v22", dir: "h/.nvm/versions/node/v22/bin"},
		{name: "fnm", files: []string{"h/.local/share/fnm/node-versions/v20/installation/bin/node", "run/fnm/1 -> ROOT/h/.local/share/fnm/node-versions/v20/installation"},
			path: "run/fnm/1/bin", program: "node", mounts: "h/.local/share/fnm/node-versions/v20/installation", dir: "h/.local/share/fnm/node-versions/v20/installation/bin"},
		{name: "volta", files: []string{"h/.volta/bin/volta-shim", "h/.volta/bin/node -> volta-shim", `h/.volta/tools/user/platform.json={"node": {"runtime": "20.1.0"}}`, "h/.volta/tools/image/node/20.1.0/bin/node"},
			path: "h/.volta/bin", program: "node", mounts: "h/.volta/tools/image/node/20.1.0", dir: "h/.volta/tools/image/node/20.1.0/bin"},
		{name: "volta without a default", files: []string{"h/.volta/bin/volta-shim", "h/.volta/bin/node -> volta-shim"}, path: "h/.volta/bin", program: "node", why: "volta has no default"},
		{name: "asdf", files: []string{"h/.asdf/shims/node=#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec asdf", "h/.asdf/installs/nodejs/20.1.0/bin/node"},
			path: "h/.asdf/shims", program: "node", mounts: "h/.asdf/installs/nodejs/20.1.0", dir: "h/.asdf/installs/nodejs/20.1.0/bin"},
		{name: "asdf's script names a path", files: []string{"h/.asdf/shims/node=# asdf-plugin: ../../secret 1\n", "h/.asdf/installs/x=", "h/secret/1/bin/node"}, path: "h/.asdf/shims", program: "node", why: "no version"},
		{name: "mise, activated", files: []string{"h/.local/share/mise/installs/node/20.1.0/bin/node", "h/.local/share/mise/installs/node/20 -> ./20.1.0"},
			path: "h/.local/share/mise/installs/node/20/bin", program: "node", mounts: "h/.local/share/mise/installs/node/20.1.0", dir: "h/.local/share/mise/installs/node/20.1.0/bin"},
		{name: "mise by stand-ins", files: []string{"h/.local/bin/mise", "h/.local/share/mise/shims/go -> ROOT/h/.local/bin/mise", "h/.local/share/mise/installs/go/1.9.2/bin/go", "h/.local/share/mise/installs/go/1.10.1/bin/go"},
			path: "h/.local/share/mise/shims", program: "go", mounts: "h/.local/share/mise/installs/go/1.10.1", dir: "h/.local/share/mise/installs/go/1.10.1/bin"},
		{name: "pyenv", files: []string{"h/.pyenv/shims/python3=#!/usr/bin/env bash", "h/.pyenv/version=3.12\n", "h/.pyenv/versions/3.12.1/bin/python3", "h/.pyenv/versions/3.12.10/bin/python3", "h/.pyenv/versions/3.13.0/bin/python3"},
			path: "h/.pyenv/shims", program: "python3", mounts: "h/.pyenv/versions/3.12.10", dir: "h/.pyenv/versions/3.12.10/bin"},
		{name: "pyenv, the project's version", files: []string{"h/.pyenv/shims/python3=#!/usr/bin/env bash", "h/.pyenv/version=3.12.1\n", "h/.pyenv/versions/3.12.1/bin/python3", "h/.pyenv/versions/3.13.0/bin/python3", "p/.python-version=3.13.0"},
			path: "h/.pyenv/shims", program: "python3", mounts: "h/.pyenv/versions/3.13.0", dir: "h/.pyenv/versions/3.13.0/bin"},
		{name: "the project's version names a path", files: []string{"h/.pyenv/shims/python3=#!/usr/bin/env bash", "h/.pyenv/versions/3.12.1/bin/python3", "h/secret/bin/python3", "p/.python-version=../../secret"},
			path: "h/.pyenv/shims", program: "python3", why: "pyenv has no version"},
		{name: "rbenv by a variable", files: []string{"h/.rbenv/shims/ruby=#!/bin/sh", "h/.rbenv/version=3.2.0", "h/.rbenv/versions/3.2.0/bin/ruby", "h/.rbenv/versions/3.3.0/bin/ruby"},
			path: "h/.rbenv/shims", env: map[string]string{"RBENV_VERSION": "3.3.0"}, program: "ruby", mounts: "h/.rbenv/versions/3.3.0", dir: "h/.rbenv/versions/3.3.0/bin"},
		{name: "rustup", files: []string{"h/.cargo/bin/rustup", "h/.cargo/bin/cargo -> rustup", "h/.rustup/settings.toml=version = \"12\"\ndefault_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n", "h/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo"},
			path: "h/.cargo/bin", program: "cargo", mounts: "h/.rustup/toolchains/stable-x86_64-unknown-linux-gnu", dir: "h/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin"},
		{name: "rustup, a short name", files: []string{"h/.cargo/bin/rustup", "h/.cargo/bin/cargo -> rustup", "h/.rustup/settings.toml=default_toolchain = \"stable\"\n", "h/.rustup/toolchains/stable-aarch64/bin/cargo"},
			path: "h/.cargo/bin", program: "cargo", mounts: "h/.rustup/toolchains/stable-aarch64", dir: "h/.rustup/toolchains/stable-aarch64/bin"},
		{name: "SDKMAN", files: []string{"h/.sdkman/candidates/java/21/bin/java", "h/.sdkman/candidates/java/current -> 21"},
			path: "h/.sdkman/candidates/java/current/bin", program: "java", mounts: "h/.sdkman/candidates/java/21", dir: "h/.sdkman/candidates/java/21/bin"},
		{name: "Homebrew", files: []string{"brew/Cellar/node/22/bin/node", "brew/bin/node -> ../Cellar/node/22/bin/node"}, path: "brew/bin", program: "node", mounts: "brew", dir: "brew/bin"},
		{name: "one program of ~/.local/bin", files: []string{"h/.local/bin/uv"}, path: "h/.local/bin", program: "uv", mounts: "h/.local/bin/uv", dir: "h/.local/bin"},
		{name: "pipx, with pyenv's Python", files: []string{"h/.local/bin/poetry -> ROOT/h/.local/share/pipx/venvs/poetry/bin/poetry", "h/.local/share/pipx/venvs/poetry/bin/poetry=#!ROOT/h/.local/share/pipx/venvs/poetry/bin/python", "h/.local/share/pipx/venvs/poetry/bin/python -> ROOT/h/.pyenv/versions/3.12.1/bin/python3", "h/.local/share/pipx/venvs/poetry/pyvenv.cfg=home = ROOT/h/.pyenv/versions/3.12.1/bin", "h/.pyenv/versions/3.12.1/bin/python3"},
			path: "h/.local/bin", program: "poetry", mounts: "h/.local/share/pipx/venvs/poetry h/.pyenv/versions/3.12.1", dir: "h/.local/share/pipx/venvs/poetry/bin"},
		{name: "a link to another name", files: []string{"h/.local/bin/pnpm -> ../lib/pnpm/pnpm.cjs", "h/.local/lib/pnpm/pnpm.cjs"}, path: "h/.local/bin", program: "pnpm", why: "it leads to"},
		{name: "the project's own directories don't count", files: []string{"p/node_modules/.bin/node", "h/.nvm/versions/node/v22/bin/node"}, path: "p/node_modules/.bin h/.nvm/versions/node/v22/bin", program: "node",
			mounts: "h/.nvm/versions/node/v22", dir: "h/.nvm/versions/node/v22/bin"},
		{name: "what no worker gets (B7)", files: []string{"h/.config/gh/bin/node"}, path: "h/.config/gh/bin", program: "node", why: "(B7)"},
		{name: "the home directory's bin is not a toolchain", files: []string{"h/bin/tool"}, path: "h/bin", program: "tool", mounts: "h/bin/tool", dir: "h/bin"},
		{name: "a link that leads nowhere", files: []string{"h/x/bin/node -> loop", "h/x/bin/loop -> node"}, path: "h/x/bin", program: "node"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			machine(t, root, tt.files...)
			at := func(list string) (out []string) {
				for p := range strings.FieldsSeq(list) {
					out = append(out, filepath.Join(root, p))
				}
				return out
			}
			lookup := func(name string) (string, bool) {
				if name == "PATH" {
					return strings.Join(at(tt.path), ":"), true
				}
				v, ok := tt.env[name]
				return v, ok
			}
			home, project := filepath.Join(root, "h"), filepath.Join(root, "p")
			m := Machine{Lookup: lookup, Home: home, Project: project, Refused: hostpath.For(hostpath.Caller{Homes: []string{home}, Project: project})}
			got, ok := m.Find(tt.program)
			if want := tt.mounts != "" || tt.why != ""; ok != want {
				t.Fatalf("found %v, want %v: %+v", ok, want, got)
			}
			if diff := cmp.Diff(at(tt.mounts), got.Mounts); diff != "" {
				t.Errorf("mounts (-want +got)\n%s", diff)
			}
			if want := strings.Join(at(tt.dir), ""); got.Dir != want {
				t.Errorf("directory %q, want %q", got.Dir, want)
			}
			if !strings.Contains(got.Why, tt.why) || (got.Why == "") != (tt.why == "") {
				t.Errorf("why %q, want %q", got.Why, tt.why)
			}
		})
	}
}

// What `image: host` has needs no mount.
func TestVisible(t *testing.T) {
	m := Machine{Lookup: func(string) (string, bool) { return "/usr/bin:/bin", true }, Home: "/h"}
	got, ok := m.Find("ls")
	if !ok || !got.Visible || got.Dir != "" || len(got.Mounts) > 0 {
		t.Errorf("ls: %v %+v", ok, got)
	}
	for _, name := range []string{"", "a/b", "..", "no-such-program-here"} {
		if got, ok := m.Find(name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

func TestCompareVersions(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"3.9", "3.10", -1}, {"3.10.1", "3.10", 1}, {"v22.3.0", "v22.3.0", 0}, {"a", "b", -1}, {"1.2-rc", "1.10", -1}} {
		if got := compareVersions(tt.a, tt.b); got < 0 != (tt.want < 0) || got > 0 != (tt.want > 0) {
			t.Errorf("%s and %s: %d, want the sign of %d", tt.a, tt.b, got, tt.want)
		}
	}
}
