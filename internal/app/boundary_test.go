package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
)

// B47: nothing runs that is granted more than the machine's boundary, or the user's, with
// the values that variables have; what can't be decided is more.
func TestBoundary(t *testing.T) {
	dir := t.TempDir()
	vars := map[string]string{"XDG_CONFIG_HOME": dir, "API": "api.example.org"}
	env := &Env{
		MachineSettings: filepath.Join(dir, "machine.yaml"), Dir: filepath.Join(dir, "p"), Home: filepath.Join(dir, "home"),
		Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok },
	}
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	file := func(name, container, more string) string {
		secrets := ""
		if strings.Contains(container, "secrets:") {
			secrets = ", container: {secrets: [t]}"
		}
		return write(name, "workshop:\n  name: p\n  container: {image: 'w:1', "+container+"}\n  workers: [{name: w, tools: [Read], instructions: x"+secrets+"}]\n"+more)
	}
	const usual = "network: {mode: restricted, allow: ['${API:-api.example.org}', '*.example.com']}, mounts: ['./src:/src', {source: ~/.cache/x, target: /x, mode: rw, outside_project: true}], secrets: [{name: t, env: T}]"
	machine := func() {
		t.Helper()
		write("machine.yaml", "boundary: boundary.yaml\n")
		file("boundary.yaml", usual, "")
	}
	for _, c := range []struct {
		name, container, more string
		before                func()
		want                  string // in the refusal; empty: it runs
	}{
		{name: "no boundary", container: usual, before: func() {}},
		{name: "the same", container: usual, before: machine},
		{name: "less", container: "network: none, mounts: ['./src/a:/src']", before: machine},
		{name: "a variable with another value", container: "network: {mode: restricted, allow: ['${API:-api.example.org}']}", before: func() { machine(); vars["API"] = "evil.example.net" }, want: "widened w: network.allow: nothing -> evil.example.net"},
		{name: "a value that is granted", container: "network: {mode: restricted, allow: ['${OTHER}']}", before: func() { machine(); vars["OTHER"] = "a.example.com" }},
		{name: "open", container: "network: open", before: machine, want: "network.mode: restricted -> open"},
		{name: "writable", container: "mounts: ['./src:/src:rw']", before: machine, want: "widened w: mounts: ./src at /src ro -> ./src at /src rw [workshop.yaml:3, was "},
		{name: "a mode by a variable", container: "mounts: ['./src:/src:${MODE:-rw}']", before: machine, want: "./src at /src rw"},
		{name: "another secret", container: "secrets: [{name: t, env: U}]", before: machine, want: "secrets"},
		{name: "approvals", container: usual, more: "  approvals: {default: auto}\n", before: machine, want: "widened approvals: default ask, but not for reading -> default auto"},
		{name: "the boundary's variables have their defaults", container: usual, before: func() {
			machine()
			file("boundary.yaml", strings.Replace(usual, "API:-api.example.org", "API:-other.example.org", 1), "")
		}, want: "-> api.example.org"},
		{name: "the user's too", container: usual, before: func() {
			machine()
			write("workshop/config.yaml", "boundary: mine.yaml\n")
			file("workshop/mine.yaml", "network: none", "")
		}, want: "network.mode: none -> restricted"},
		{name: "the user's doesn't widen the machine's", container: "network: open", before: func() {
			machine()
			write("workshop/config.yaml", "boundary: mine.yaml\n")
			file("workshop/mine.yaml", "network: open", "")
		}, want: "network.mode: restricted -> open"},
		{name: "gone", container: usual, before: func() { write("machine.yaml", "boundary: gone.yaml\n") }, want: "can't be read; nothing was started"},
		{name: "not a workshop", container: usual, before: func() { write("machine.yaml", "boundary: machine.yaml\n") }, want: "can't be read; nothing was started"},
		{name: "a variable without a value", container: usual, before: func() { machine(); file("boundary.yaml", "mounts: ['${API}:/x']", "") }, want: "can't be read; nothing was started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vars["API"] = "api.example.org"
			for _, name := range []string{"machine.yaml", "workshop/config.yaml"} {
				_ = os.Remove(filepath.Join(dir, name))
			}
			c.before()
			s, err := env.Read(t.Context(), file("p/workshop.yaml", c.container, c.more))
			if err != nil || s.Workshop == nil {
				t.Fatal(err, s.Diagnostics)
			}
			template := s.Workshop.Workers[0].Container.Network.Source
			err = env.MayRun(t.Context(), s)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
			if s.Workshop.Workers[0].Container.Network.Source != template {
				t.Error("the workshop was changed")
			}
		})
	}
}

// A run of flags alone is within it, too.
func TestBoundaryOfRun(t *testing.T) {
	dir := t.TempDir()
	env := &Env{MachineSettings: filepath.Join(dir, "machine.yaml"), Dir: filepath.Join(dir, "project"), Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	for name, text := range map[string]string{
		"machine.yaml":  "boundary: boundary.yaml\n",
		"boundary.yaml": "workshop: {name: b, container: {image: host, network: none, mounts: ['./:/workspace']}, workers: [{name: w, tools: [], instructions: x}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(env.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for network, refused := range map[string]bool{"": false, "open": true} {
		p, err := env.LoadRun(t.Context(), &RunOptions{NoFile: true, RunFlags: RunFlags{Network: network}})
		if err != nil {
			t.Fatal(err)
		}
		if err := env.MayRun(t.Context(), p.Source); (CodeOf(err) == CodeRefused) != refused {
			t.Errorf("network %q: %v", network, err)
		}
	}
}

// What is opened in a running guard is held to the boundaries, and nothing learns where
// there is one.
func TestBoundaryOfRules(t *testing.T) {
	dir := t.TempDir()
	env := &Env{MachineSettings: filepath.Join(dir, "machine.yaml"), Dir: dir, Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	workers := "workers: [{name: w, tools: [], instructions: x}]}\n"
	for name, text := range map[string]string{
		"boundary.yaml": "workshop: {name: b, container: {image: host, network: {mode: restricted, allow: [api.example.org]}}, " + workers,
		"workshop.yaml": "workshop: {name: p, container: {image: host, network: {mode: restricted}}, " + workers,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := env.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, machine := range []string{"", "boundary: boundary.yaml\n"} {
		if err := os.WriteFile(env.MachineSettings, []byte(machine), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := env.RefuseLearning(c, nil, false); (CodeOf(err) == CodeRefused) != (machine != "") {
			t.Errorf("%q: learning: %v", machine, err)
		}
		for host, beyond := range map[string]bool{"api.example.org": false, "other.example.org": true} {
			pattern, err := firewall.ParseHostPattern(host)
			if err != nil {
				t.Fatal(err)
			}
			if err := env.rulesWithinBoundaries(t.Context(), []firewall.Rule{{Host: pattern, Ports: []firewall.PortRange{{First: 443, Last: 443}}}}); (CodeOf(err) == CodeRefused) != (beyond && machine != "") {
				t.Errorf("%q: %s: %v", machine, host, err)
			}
		}
	}
}
