package workshop

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every example loads, with the warnings that are expected of it and no
// others.
func TestExamples(t *testing.T) {
	expected := map[string][]string{}
	dirs, err := filepath.Glob("../examples/*/workshop.yaml")
	if err != nil || len(dirs) < 5 {
		t.Fatalf("examples: %v %v", dirs, err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			w, diags := Load(t.Context(), os.DirFS(dir), "workshop.yaml", Options{Home: "/home/reader"})
			if diff := cmp.Diff(expected[filepath.Base(dir)], places(diags)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if w == nil || len(w.Workers) == 0 {
				t.Fatal("no workers")
			}
			for _, name := range []string{"README.md"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
			for _, m := range w.Container.Mounts {
				if m.ReadWrite {
					continue // `up` makes it, and gives it to the worker's user
				}
				if _, err := os.Stat(filepath.Join(dir, m.Source.V)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// The smallest form of the spec stands in the example as it is written there.
func TestSmallestForm(t *testing.T) {
	data, err := os.ReadFile("../examples/code-review/workshop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const want = `workshop:
  name: code-review-workshop
  container:
    image: llm-do-worker:latest
    network: restricted
    mounts:
      - ./src:/workspace/src:ro
      - ./output:/workspace/output:rw
    resources:
      memory: 2G
      cpu: 1
  workers:
    - code-reviewer
    - security-scanner
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	w, diags := Load(t.Context(), os.DirFS("../examples/code-review"), "workshop.yaml", Options{})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if rooms := Rooms(w); len(rooms) != 1 || strings.Join(rooms[0].Workers, " ") != "code-reviewer security-scanner" {
		t.Errorf("rooms %v", rooms)
	}
}

// examples/full and examples/shared show every key, those of long forms included.
func TestFullShowsEveryKey(t *testing.T) {
	found := map[string]map[string]bool{} // place → keys
	var walk func(n *node, place string)
	walk = func(n *node, place string) {
		for _, item := range n.items {
			walk(item, place+"[]")
		}
		for _, p := range n.pairs {
			if found[place] == nil {
				found[place] = map[string]bool{}
			}
			found[place][p.key.text] = true
			below := place + "." + p.key.text
			if p.key.text == "container" { // the workers' are the same
				below = ".workshop.container"
			}
			walk(p.value, below)
		}
	}
	for _, name := range []string{"full", "local-model", "shared/app", "shared/go-review", "shared/sast"} {
		data, err := os.ReadFile("../examples/" + name + "/workshop.yaml")
		if err != nil {
			t.Fatal(err)
		}
		walk(parse(newSource("workshop.yaml", data), &problems{}), "")
	}
	const container = ".workshop.container"
	places := map[string]reflect.Type{
		"":                                 reflect.TypeFor[document](),
		".workshop":                        reflect.TypeFor[workshopForm](),
		".workshop.extends":                reflect.TypeFor[extendsForm](),
		".workshop.imports[]":              reflect.TypeFor[importForm](),
		".workshop.open":                   reflect.TypeFor[openForm](),
		".workshop.open.network":           reflect.TypeFor[openNetworkForm](),
		".workshop.open.mounts[]":          reflect.TypeFor[openMountForm](),
		".workshop.workers[]":              reflect.TypeFor[workerForm](),
		".workshop.mcp.issues":             reflect.TypeFor[mcpForm](),
		".workshop.models":                 reflect.TypeFor[modelsForm](),
		".workshop.models.services.qwen":   reflect.TypeFor[modelForm](),
		".workshop.approvals":              reflect.TypeFor[approvalsForm](),
		".workshop.approvals.rules[]":      reflect.TypeFor[approvalForm](),
		container:                          reflect.TypeFor[partialContainer](),
		container + ".resources":           reflect.TypeFor[partialResources](),
		container + ".build":               reflect.TypeFor[buildForm](),
		container + ".secrets[]":           reflect.TypeFor[secretForm](),
		container + ".caches[]":            reflect.TypeFor[cacheForm](),
		container + ".ports[]":             reflect.TypeFor[portForm](),
		container + ".mounts[]":            reflect.TypeFor[mountForm](),
		container + ".network":             reflect.TypeFor[networkForm](),
		container + ".network.allow[]":     reflect.TypeFor[ruleForm](),
		container + ".network.allow[].git": reflect.TypeFor[gitForm](),
		container + ".network.agents[]":    reflect.TypeFor[agentForm](),
	}
	shown := 0
	for place, typ := range places {
		for _, key := range formOf(typ).keyNames() {
			shown++
			if !found[place][key] && key != "signer" { // it would be somebody's key
				t.Errorf("%s.%s isn't shown", place, key)
			}
		}
	}
	// A form that is added to the package must be added here.
	titled := 0
	files, _ := filepath.Glob("*.go")
	for _, name := range files {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		titled += len(titleFunc.FindAll(src, -1))
	}
	if titled != len(places) {
		t.Errorf("%d forms, %d of them looked at (%d keys)", titled, len(places), shown)
	}
}

var titleFunc = regexp.MustCompile(`(?m)^func \(\*\w+\) title\(\) string`)
