package workshop

import (
	"context"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop/worker"
)

const inlineWorkers = `workshop:
  name: inline
  container: {image: host}
  workers:
    - {name: tester, tools: [Read, "Bash(git:*)"], description: Tests, delegates-to: [bare]}
    - name: writer
      allowed-tools: Read, write_file
      instructions: |
        Write it down; $${HOME} is ${SET}.

      model: large
      result_type: schemas/report.json
    - {name: bare, tools: []}
`

func inlineProject() fs.FS {
	return fstest.MapFS{
		"workshop.yaml":       {Data: []byte(inlineWorkers)},
		"schemas/report.json": {Data: []byte(`{"type": "string"}`)},
	}
}

// A worker without a file has what its item says, and is offered nothing else (B41);
// what it lacks is no reason for a warning.
func TestInlineWorkers(t *testing.T) {
	w, problems := Load(context.Background(), inlineProject(), "workshop.yaml", testOptions())
	if len(problems) > 0 {
		t.Fatal(text(t, inlineProject(), problems))
	}
	if got, want := w.GrantingFiles(), []string{"workshop.yaml"}; !cmp.Equal(got, want) {
		t.Errorf("granting files: got %v, want %v", got, want)
	}
	tester, writer, bare := w.Workers[0], w.Workers[1], w.Workers[2]
	for _, x := range []struct {
		about     string
		got, want any
	}{
		{"the tools", tester.Definition.Offers(), []tool.Offer{{Name: tool.ReadFile}, {Name: tool.Shell, Limit: "git:*"}}},
		{"the place of a tool", tester.Definition.Tools[1].Source.Range.String(), "workshop.yaml:5:37"},
		{"its delegates", tester.Definition.DelegatesTo[0].Name, "bare"},
		{"the description", tester.Definition.Description, "Tests"},
		{"the file", tester.File, "workshop.yaml"},
		{"the format", tester.Definition.Dialect, worker.InlineWorker},
		{"tools as a text", writer.Definition.Offers(), []tool.Offer{{Name: tool.ReadFile}, {Name: tool.WriteFile}}},
		{"instructions", writer.Definition.Instructions, "Write it down; ${HOME} is set."},
		{"the model", writer.Definition.Model, "large"},
		{"the result type", string(writer.Definition.ResultType), `{"type":"string"}`},
		{"no tools", bare.Definition.Offers(), []tool.Offer(nil)},
	} {
		if d := cmp.Diff(x.want, x.got); d != "" {
			t.Errorf("%s: -want +got\n%s", x.about, d)
		}
	}
}
