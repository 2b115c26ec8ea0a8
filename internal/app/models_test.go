package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/workshop"
)

// TestModelRoomNames: whatever the lengths of the names, a room has one that is valid and its
// own.
func TestModelRoomNames(t *testing.T) {
	long, longer := strings.Repeat("a", 60), strings.Repeat("a", 63)
	seen := map[string]string{}
	for _, project := range []string{"shop", long, longer} {
		for _, service := range []string{"qwen", long, longer, longer[1:] + "b"} {
			c := &Project{ProjectRef: ProjectRef{Name: project, Dir: "/p"}}
			got := (&Env{}).modelRef(c, &workshop.ModelService{Name: service}).Name
			if !ValidName(got) || seen[got] != "" {
				t.Errorf("the model %s of %s has the room %s, as has %s", service, project, got, seen[got])
			}
			seen[got] = service + " of " + project
		}
	}
}

// TestModelRoomsOf: a workshop's rooms are those of its models, and no other's of its
// directory or with such a name.
func TestModelRoomsOf(t *testing.T) {
	env := &Env{Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	long := strings.Repeat("a", 63)
	for _, r := range []facts.Record{
		{Project: "a-model-x", Dir: "/p", ModelOf: "a"},
		{Project: "a-model-x-model-y", Dir: "/p", ModelOf: "a-model-x"},
		{Project: "a-model-other", Dir: "/q", ModelOf: "a"},
		{Project: "a-model-worker", Dir: "/p"},
		{Project: shorten(long + "-model-x"), Dir: "/p", ModelOf: long},
	} {
		at := filepath.Join(env.recordsDir(), r.Project)
		text := `{"Project": "` + r.Project + `", "Dir": "` + r.Dir + `", "ModelOf": "` + r.ModelOf + `"}`
		for _, err := range []error{os.MkdirAll(at, 0o700), os.WriteFile(filepath.Join(at, "project.json"), []byte(text), 0o600)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for project, want := range map[string][]string{"a": {"a-model-x"}, "a-model-x": {"a-model-x-model-y"}, long: {shorten(long + "-model-x")}, "b": nil} {
		var got []string
		for _, r := range env.modelRooms(ProjectRef{Name: project, Dir: "/p"}) {
			got = append(got, r.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has the rooms %v, want %v", project, got, want)
		}
	}
}

// TestModelKey: it stays the same, goes with what is up of the room, and one that is empty is
// none.
func TestModelKey(t *testing.T) {
	env := &Env{Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	if key, err := env.modelKey("room"); key != "" || err != nil {
		t.Errorf("before there is one: %q, %v", key, err)
	}
	path, err := env.modelKeyFile("room")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("who looks makes one: %v", err)
	}
	first, err := env.makeModelKey("room")
	if again, err2 := env.makeModelKey("room"); len(first) < 20 || again != first || errors.Join(err, err2) != nil {
		t.Errorf("%q, then %q, %v, %v", first, again, err, err2)
	}
	if err := atomicfile.Write(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := env.makeModelKey("room"); len(other) < 20 || other == first || err != nil {
		t.Errorf("in place of an empty one: %q, %v", other, err)
	}
	for range 2 {
		if err := env.forgetSecrets(ProjectRef{Name: "room", Dir: "/p"}, nil, engine.Observed{}); err != nil {
			t.Error(err)
		}
		if key, err := env.modelKey("room"); key != "" || err != nil {
			t.Errorf("after down: %q, %v", key, err)
		}
	}
}

// TestCheckRoom: a workshop that has the name of a model's room doesn't take its place.
func TestCheckRoom(t *testing.T) {
	for _, x := range []struct {
		name   string
		of     string
		noted  *facts.Record
		refuse bool
	}{
		{"nothing is up", "", nil, false},
		{"a workshop again", "", &facts.Record{Dir: "/p"}, false},
		{"a room again", "a", &facts.Record{Dir: "/p", ModelOf: "a"}, false},
		{"a workshop over a room", "", &facts.Record{Dir: "/p", ModelOf: "a"}, true},
		{"a room over a workshop", "a", &facts.Record{Dir: "/p"}, true},
		{"a room over that of another", "a", &facts.Record{Dir: "/p", ModelOf: "b"}, true},
		{"what was up", "", &facts.Record{Dir: "/p", ModelOf: "a", Down: true}, false},
		{"of a directory that is gone", "", &facts.Record{Dir: "/q", ModelOf: "a"}, false},
	} {
		c := &Project{ProjectRef: ProjectRef{Name: "a-model-x", Dir: "/p"}, modelOf: x.of}
		if err := c.checkRoom(x.noted); (err != nil) != x.refuse {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}
