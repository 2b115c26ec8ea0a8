package standalone

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// TestCarried: the repository's file is what the command writes.
func TestCarried(t *testing.T) {
	carried, err := os.ReadFile("../../../docker/compose.local-llm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(carried) != Compose() {
		t.Error("docker/compose.local-llm.yaml isn't what `llmdo models compile --standalone` writes: run `make generate`")
	}
}

func load(t *testing.T, env types.Mapping) *types.Project {
	t.Helper()
	p, err := loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir: "/x", Environment: env, ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(Compose())}},
	}, func(o *loader.Options) { o.SetProjectName("x", true) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPrograms: what Compose reads of the programs is what their files say.
func TestPrograms(t *testing.T) {
	p := load(t, nil)
	for service, file := range map[string]string{"local-llm": "start.pl", "local-llm-port": "relay.pl"} {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Services[service].Entrypoint[2]; got != strings.ReplaceAll(string(want), "\t", "  ") {
			t.Errorf("%s: the file has\n%s", service, got)
		}
		if strings.Contains(string(want), "$$") {
			t.Errorf("%s has $$, which nobody can tell from an escaped $", file)
		}
	}
}

// TestVariables: each that the head of the file names, and no other, has an effect, and
// its default is the one that the head says.
func TestVariables(t *testing.T) {
	defaults := map[string]string{}
	head, rest, _ := strings.Cut(Compose(), "\nservices:\n")
	for line := range strings.Lines(head) {
		name, says, ok := strings.Cut(strings.TrimLeft(line, "# "), " ")
		if !ok || !strings.HasPrefix(name, "LOCAL_LLM_") {
			continue
		}
		_, says, _ = strings.Cut(says, "(")
		says, _, _ = strings.Cut(says, ")")
		defaults[name] = says
	}
	for part := range strings.SplitSeq(rest, "${") {
		name, value, ok := strings.Cut(part, ":-")
		if !strings.HasPrefix(name, "LOCAL_LLM_") {
			continue
		}
		value, _, _ = strings.Cut(value, "}")
		want, named := defaults[name]
		switch {
		case !ok:
			t.Errorf("%s has no default", name)
		case !named:
			t.Errorf("the head doesn't name %s", name)
		case name == "LOCAL_LLM_IMAGE" && value == Image:
		case value != want:
			t.Errorf("%s: default %q, the head says %q", name, value, want)
		}
		defaults[name+" used"] = ""
	}
	for name := range defaults {
		if _, used := defaults[name+" used"]; !used && !strings.HasSuffix(name, " used") {
			t.Errorf("nothing reads %s", name)
		}
	}
	if len(defaults) < 20 {
		t.Errorf("%d variables", len(defaults)/2)
	}
}
