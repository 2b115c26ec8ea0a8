package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/control"
)

// Workers of a learning room learn, and others don't.
func TestLearningOf(t *testing.T) {
	until := time.Now().Add(time.Hour)
	s := control.State{
		Learning: map[string]time.Time{"room-b": until},
		Rooms:    []control.RoomState{{Room: "room-a", Workers: []string{"a"}}, {Room: "room-b", Workers: []string{"c", "b"}}},
	}
	by := learningOf(s)
	if len(by) != 2 || !by["b"].Equal(until) || !by["c"].Equal(until) {
		t.Errorf("%v", by)
	}
	if text := LearningText(s); !strings.HasSuffix(text, "the allow list is not enforced for b and c (B23–B25)") {
		t.Error(text)
	}
}

// A worker with a kernel of its own doesn't learn: every port would be opened, and not all
// are carried to it (B28). Others may.
func TestLearnsOnThisMachinesKernel(t *testing.T) {
	env := &Env{Dir: t.TempDir(), Home: t.TempDir(), Lookup: func(string) (string, bool) { return "", false }}
	file := `workshop:
  name: p
  container: {image: host, network: {mode: restricted}}
  workers:
    - {name: near, tools: [], instructions: x}
    - {name: far, container: {kernel: sandboxed}, tools: [], instructions: x}
`
	if err := os.WriteFile(filepath.Join(env.Dir, "workshop.yaml"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := env.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := env.RefuseLearning(c, []string{"near"}, false); err != nil {
		t.Error(err)
	}
	err = env.RefuseLearning(c, nil, false)
	if CodeOf(err) != CodeRefused || !strings.HasSuffix(err.Error(), "(B28): far") {
		t.Error(err)
	}
}
