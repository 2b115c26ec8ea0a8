package app

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// What is typed is a value of the file, whatever it is: it never becomes structure, and
// its line is known.
func FuzzRunText(f *testing.F) {
	for _, s := range []string{"a: b", "[x", "*x", "&a", "!!int 1", "| x", "- x", "#", "'", `"`, "true", "1.0", "~", "${X}", "a\nb", "\t", "%x", "@x", "`x`", "", "\u2028", "0x1f", "1e3", "2026-01-01", "<<"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, value, path string) {
		if (&RunFlags{Env: []string{value, path}}).checkText() != nil {
			return
		}
		var m workshop.Mount
		m.Source.V, m.Target.V, m.OutsideProject = path, "/x", strings.HasPrefix(path, "/")
		text, flags, err := writeYAML(yamlMap{{"v", yamlScalarNode(value, "--v")}, {"list", yamlList{yamlScalarNode(value, "--list"), mountItem(m, "--mount")}}, {"end", yamlScalarNode("end", "--end")}})
		if err != nil { // what YAML can't hold
			return
		}
		var got struct {
			V    yaml.Node
			List []yaml.Node
			End  string
		}
		if err := yaml.Load(text, &got); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got.V.Kind != yaml.ScalarNode || got.V.Value != diag.Literal(value) || len(got.List) != 2 || got.List[0].Value != diag.Literal(value) || got.End != "end" {
			t.Fatalf("%q became\n%s", value, text)
		}
		for _, line := range []int{got.V.Line, got.List[0].Line, got.List[1].Line} {
			if !strings.HasPrefix(flags[line], "--") {
				t.Errorf("line %d has no flag: %v\n%s", line, flags, text)
			}
		}
	})
}

func TestRunMounts(t *testing.T) {
	env := &Env{Dir: "/p/sub", Lookup: func(string) (string, bool) { return "", false }}
	w := &workshop.Worker{}
	for source, target := range map[string]string{"./src": "/workspace/src", "./src/deep": "/deep", "/data": "/data"} {
		var m workshop.Mount
		m.Source.V, m.Target.V = source, target
		w.Container.Mounts = append(w.Container.Mounts, m)
	}
	for _, tt := range []struct {
		name, arg, root string
		worker          *workshop.Worker
		source, target  string
		outside         bool
	}{
		{"this directory", ".", "/p/sub", nil, ".", "/workspace", false},
		{"below it", "./out/", "/p/sub", nil, "out", "/workspace/out", false},
		{"by its whole path", "/p/sub/out", "/p/sub", nil, "out", "/workspace/out", false},
		{"elsewhere", "../lib", "/p/sub", nil, "../lib", "/p/lib", true},
		{"elsewhere, absolute", "/opt/x", "/p/sub", nil, "/opt/x", "/opt/x", true},
		{"with a target", "out:/o", "/p/sub", nil, "out", "/o", false},
		{"a colon in the name", "a:b", "/p/sub", nil, "a:b", "/workspace/a:b", false},
		{"in home", "~/x:/x", "/p/sub", nil, "~/x", "/x", true},
		{"a worker's", "../src/a", "/p", w, "src/a", "/workspace/src/a", false},
		{"a worker's, the nearest", "../src/deep/x", "/p", w, "src/deep/x", "/deep/x", false},
		{"a worker's itself", "../src", "/p", w, "src", "/workspace/src", false},
		{"none of a worker's", ".", "/p", w, "sub", "/p/sub", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := env.runMount(tt.arg, tt.root, tt.worker)
			if m.Source.V != tt.source || m.Target.V != tt.target || m.OutsideProject != tt.outside {
				t.Errorf("got %q at %q, outside %t, want %q at %q, outside %t", m.Source.V, m.Target.V, m.OutsideProject, tt.source, tt.target, tt.outside)
			}
		})
	}
}

func TestRunNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	for _, name := range []string{ownName(long, "-run-12345678"), runsName("/p/" + long), runsName("/"), runsName("/p/Ä Ö")} {
		if !ValidName(name) {
			t.Errorf("%q is no name of a project", name)
		}
	}
	if runsName("/a/x") == runsName("/b/x") {
		t.Error("two directories share what runs wrote")
	}
}
