package compose

import (
	"context"
	"maps"
	"path"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// load reads compose.yaml as Compose v2 does, with schema validation.
func load(t testing.TB, data []byte, env types.Mapping) *types.Project {
	t.Helper()
	all := types.Mapping{VarFacts: "facts", VarInitImage: "sha256:1111"}
	maps.Copy(all, env)
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  "/work/project/.workshop/x",
		ConfigFiles: []types.ConfigFile{{Filename: ComposeFile, Content: data}},
		Environment: all,
	}, func(o *loader.Options) {
		o.SetProjectName("x", true)
		o.SkipNormalization = true
		o.ResolvePaths = false
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	return p
}

// sameProject compares a project with what a loader reads from its rendered
// form. What only the project says (options of binds, our variables) and what
// only the loader adds is left out.
func sameProject(t testing.TB, want, got *types.Project) {
	t.Helper()
	diff := cmp.Diff(want.Services, got.Services,
		cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(types.ServiceVolumeConfig{}, "Bind"),
		// A variable's value is written as it is: ./data for data, 64M for 64m.
		field("Source", path.Clean),
		field("Context", path.Clean),
		cmp.FilterPath(func(p cmp.Path) bool { return strings.Contains(p.GoString(), ".Tmpfs[") }, cmp.Transformer("lower", strings.ToLower)),
		field("Image", func(s string) string {
			if s == initImage {
				return "sha256:1111"
			}
			return s
		}),
	)
	if diff != "" {
		t.Errorf("the rendered file does not mean the compiled project (-project +file):\n%s", diff)
	}
	if diff := cmp.Diff(want.Networks, got.Networks, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(types.NetworkConfig{}, "Name")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Volumes, got.Volumes, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(types.VolumeConfig{}, "Name")); diff != "" {
		t.Error(diff)
	}
}

// field changes the values of a field before they are compared.
func field(name string, change func(string) string) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == "."+name }, cmp.Transformer(name, change))
}

func composeYAML(t testing.TB, c *Compiled) []byte {
	t.Helper()
	files, err := Render(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Path == ComposeFile {
			return f.Data
		}
	}
	t.Fatal("no compose.yaml")
	return nil
}

func TestRenderedFileMeansTheProject(t *testing.T) {
	c := compiled(t, sample(t, 2))
	data := composeYAML(t, c)
	t.Logf("%s", data)
	sameProject(t, c.Project, load(t, data, nil))
	if v := Check(c); len(v) > 0 {
		t.Error(v)
	}
	f := withFacts(t, c, sampleFacts())
	if v := Check(f); len(v) > 0 {
		t.Error(v)
	}
	files, err := RenderFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Logf("%s:\n%s", file.Path, file.Data)
	}
}
