package draft

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func TestText(t *testing.T) {
	f := &File{
		Name:  "web",
		About: []string{"Imported from x\ny"},
		Container: Container{
			Image: Line{Text: "host"}, Mode: "restricted",
			Allow:   []Line{{Text: "preset: npm", Why: "for npm ci"}, {Text: "preset: playwright", Off: true}},
			Mounts:  []Line{{Text: ".:/workspace:rw"}, {Text: "{source: ~/.nvm/versions/node/v22, target: /home/me/.nvm/versions/node/v22, outside_project: true}", Why: "node of this machine"}},
			Workdir: Line{Text: "/workspace"}, Env: []Pair{{Name: "A", Value: "true", Why: "because"}},
			Secrets: []Line{{Text: "{name: token, env: TOKEN}"}}, Ports: []Line{{Text: Scalar("8080:8080")}}, Memory: "4G", CPU: "2",
			Notes: map[string][]string{"image": {"The machine's."}, "mounts": {"The project."}},
		},
		MCP: []Server{{Name: "issues", Command: "npx", Args: []string{"-y", "issue server"}, Env: []Pair{{Name: "LEVEL", Value: "${LEVEL:-warn}"}}, Secrets: []Pair{{Name: "TOKEN", Value: "token"}}}},
		Workers: []Worker{
			{Name: "dev", Tools: []string{"read_file", "shell"}},
			{Name: "loose", Why: "no tools", Off: true},
			{Name: "api", Tools: []string{"shell"}, Instructions: "Run `x`.", Container: &Container{Build: &Build{Context: "./api", Args: []Pair{{Name: "V", Value: "1"}}}, Mode: "none"}},
		},
	}
	const want = `
# A workshop: the sandbox of its workers, in which tools run. Whatever is not
# granted here, they don't have.
# Imported from x y
workshop:
  name: web

  # What every worker gets. A worker may narrow it, never widen it.
  container:
    # The machine's.
    image: host
    network:
      mode: restricted
      allow:
        - preset: npm    # for npm ci
        # - preset: playwright

    # The project.
    mounts:
      - .:/workspace:rw
      # node of this machine
      - {source: ~/.nvm/versions/node/v22, target: /home/me/.nvm/versions/node/v22, outside_project: true}
    workdir: /workspace
    env:
      A: "true"    # because
    secrets:
      - {name: token, env: TOKEN}
    ports:
      - "8080:8080"
    resources: {memory: 4G, cpu: 2}

  # MCP servers that run in the workers which list their tools.
  mcp:
    issues:
      command: npx
      args: ["-y", issue server]
      env:
        LEVEL: "${LEVEL:-warn}"
      secrets:
        TOKEN: token

  workers:
    - {name: dev, tools: [read_file, shell]}
    # - loose    # no tools
    - name: api
      tools: [shell]
      instructions: "Run ` + "`x`" + `."
      container:
        build:
          context: ./api
          args:
            V: "1"
        network: none
`
	if diff := cmp.Diff(schemaLine+want, string(f.Text())); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// FuzzScalar: what is written is read as the same text, in a block and in brackets, and
// a comment stays on its line.
func FuzzScalar(f *testing.F) {
	for _, s := range []string{"", "a", "yes", "1.0", "0x1", "~", "a: b", "- a", "#", "a #b", "8080:80", "\x00", "\u2028", "{", "*", "a\nb", "é", "\xff", "2024-01-01", ".5", "1e3", "/a", "<<", "=", "12:30:45", "a,b", "a]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := "a: " + Scalar(s) + " # " + comment(s) + "\nb: [" + Scalar(s) + "]\nc: {" + Scalar("k"+s) + ": 1}\n"
		var got struct {
			A any
			B []any
			C map[any]any
		}
		if err := yaml.Unmarshal([]byte(text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want := strings.ToValidUTF8(s, "\uFFFD")
		if got.A != want || len(got.B) != 1 || got.B[0] != want || len(got.C) != 1 {
			t.Errorf("%q is read as %#v, want %q", text, got, want)
		}
	})
}
