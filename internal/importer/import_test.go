package importer

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/draft"
	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/workshop"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func options(file string) Options {
	return Options{File: file, Base: "app", Project: "/home/me/app", Home: "/home/me", Worker: "dev",
		Refused: hostpath.For(hostpath.Caller{Homes: []string{"/home/me"}, Project: "/home/me/app"})}
}

// written is what was imported, as a workshop.yaml would have it, and what was not.
func written(in *Imported) string {
	f := draft.File{Name: "app", Container: in.Container, MCP: in.MCP, Workers: in.Workers}
	text := string(f.Text())
	_, text, _ = strings.Cut(text, "container:\n")
	var b strings.Builder
	b.WriteString(text)
	for _, list := range [][2]string{{"took", strings.Join(in.Took, "; ")}, {"tools", strings.Join(in.Tools, " ")}, {"programs", strings.Join(in.Programs, " ")}} {
		b.WriteString("\n" + list[0] + ": " + list[1])
	}
	b.WriteString("\n\n")
	for _, d := range in.Problems {
		b.WriteString(d.Error() + " [" + d.Code + "]\n")
		if d.Hint != "" {
			b.WriteString("  " + d.Hint + "\n")
		}
	}
	return b.String()
}

// TestGolden: what is imported of each file, and what is named with its place.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.*.*")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v %v", files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, name, _ := strings.Cut(filepath.Base(file), ".")
			if name == "devcontainer.json" {
				name = ".devcontainer/" + name
			}
			in := Read(data, options(name))
			got, golden := written(&in), file+".want"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What can't be read is an error with its place, and costs little (B60).
func TestInvalid(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x]\n")
	for i := range 30 {
		at := func(n int) string { return "a" + string(rune('A'+n%26)) + strings.Repeat("x", n/26) }
		previous := "*a0"
		if i > 0 {
			previous = "*" + at(i-1)
		}
		bomb.WriteString(at(i) + ": &" + at(i) + " [" + previous + ", " + previous + "]\n")
	}
	for _, tt := range []struct{ name, file, data, want string }{
		{"not JSON", "devcontainer.json", "{\n  \"a\": }", "devcontainer.json:2:8: error: not valid JSON"},
		{"empty", "devcontainer.json", "", "error: not valid JSON"},
		{"a list", "devcontainer.json", "[]", "devcontainer.json:1:1: error: the file is not a mapping of keys"},
		{"deep", "devcontainer.json", deep, "nests deeper than 64 levels"},
		{"deep in a comment", "devcontainer.json", "// " + deep + "\n/* " + deep + " */ {\"image\": \"" + deep + "\"}", ""},
		{"large", "devcontainer.json", strings.Repeat(" ", MaxSize+1), "more than 1048576"},
		{"many values", "devcontainer.json", "[" + strings.Repeat("1,", maxNodes) + "1]", "more than 20000 values"},
		{"no servers", ".mcp.json", "{}", "the file has no mcpServers"},
		{"no services", "compose.yaml", "a: 1\n", "the file has no services"},
		{"not YAML", "compose.yaml", "services: [\n", "error: not valid YAML"},
		{"deep YAML", "compose.yaml", deep, "compose.yaml"},
		{"aliases of aliases", "compose.yaml", bomb.String(), "more than 20000 values"},
		{"an alias in itself", "compose.yaml", "services: &a {x: *a}\n", "error"},
		{"NUL", "compose.yaml", "a: \x00", "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := Read([]byte(tt.data), options(tt.file))
			if tt.want == "" && in.Problems.HasErrors() || !strings.Contains(in.Problems.Error(), tt.want) {
				t.Errorf("%.200s, want %s", in.Problems.Error(), tt.want)
			}
		})
	}
}

// A file with thousands of keys that aren't imported has a hundred problems.
func TestManyProblems(t *testing.T) {
	in := Read([]byte("services:\n  a:\n"+strings.Repeat("    image: {}\n", 5000)), options("compose.yaml"))
	if len(in.Problems) > maxProblems+1 {
		t.Errorf("%d problems", len(in.Problems))
	}
}

// checkImport: what was imported can be written, is read as one YAML document, names no
// path that no worker gets, and each problem has the file's name.
func checkImport(t *testing.T, file string, data []byte) {
	in := Read(data, options(file))
	for _, d := range in.Problems {
		if d.Range.Filename != file || d.Summary == "" {
			t.Errorf("a problem without a place or words: %+v", d)
		}
	}
	if len(in.Problems) > maxProblems+1 {
		t.Errorf("%d problems", len(in.Problems))
	}
	if in.Problems.HasErrors() {
		return
	}
	if in.Workers == nil {
		in.Workers = []draft.Worker{{Name: "dev"}}
	}
	f := draft.File{Name: "app", Container: in.Container, MCP: in.MCP, Workers: in.Workers}
	if f.Container.Build == nil && f.Container.Image.Text == "" {
		f.Container.Image.Text = "host"
	}
	text := f.Text()
	var doc yaml.Node
	if err := yaml.Load(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	_, list := workshop.Load(context.Background(), fstest.MapFS{"workshop.yaml": &fstest.MapFile{Data: text}}, "workshop.yaml",
		workshop.Options{Home: "/home/me", Root: "/home/me/app"})
	for _, d := range list {
		switch d.Code {
		case "protected-mount", "not-yaml", "unknown-key", "unsupported-key", "duplicate-key", "alias", "wrong-type":
			t.Errorf("%s\n%s", d.Error(), text)
		}
	}
}

func seeds(f *testing.F, pattern string) {
	files, err := filepath.Glob("testdata/*." + pattern)
	if err != nil || len(files) == 0 {
		f.Fatal(pattern, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}

func FuzzDevcontainer(f *testing.F) {
	seeds(f, "devcontainer.json")
	f.Fuzz(func(t *testing.T, data []byte) { checkImport(t, ".devcontainer/devcontainer.json", data) })
}

func FuzzMCP(f *testing.F) {
	seeds(f, "mcp.json")
	f.Fuzz(func(t *testing.T, data []byte) { checkImport(t, ".mcp.json", data) })
}

func FuzzCompose(f *testing.F) {
	seeds(f, "compose.yaml")
	f.Fuzz(func(t *testing.T, data []byte) { checkImport(t, "compose.yaml", data) })
}
