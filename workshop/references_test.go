package workshop

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop/worker"
)

const small = "workshop:\n  name: w\n  container: {image: \"i:1\"}\n  workers:\n"

func TestReferences(t *testing.T) {
	md := "---\nallowed-tools: []\n---\nDo.\n"
	llmdo := "---\nname: a\ntoolsets: []\n---\nDo.\n"
	for _, tt := range []struct {
		name, workers string
		files         map[string]string
		want          []string
		hint          string
	}{
		{name: "our own", workers: "    - a\n", files: map[string]string{"workers/a.md": md}},
		{name: "llm-do, 2025", workers: "    - a\n", files: map[string]string{"workers/a.worker": llmdo}},
		{name: "llm-do, 2025, a directory", workers: "    - a\n", files: map[string]string{"workers/a/a.worker": llmdo}},
		{name: "llm-do, 2026", workers: "    - a\n", files: map[string]string{"a.agent": llmdo}},
		{name: "a sub-agent", workers: "    - a\n", files: map[string]string{".claude/agents/a.md": "---\nname: a\ndescription: d\ntools: Read\n---\nDo.\n"}},
		{name: "a skill", workers: "    - a\n", files: map[string]string{"skills/a/SKILL.md": "---\nname: a\ndescription: d\nallowed-tools: Read\n---\nDo.\n"}},
		{name: "a file", workers: "    - {name: a, file: prompts/b.md}\n", files: map[string]string{"prompts/b.md": md}},
		{name: "one file for two", workers: "    - {name: a, file: prompts/b.md}\n    - {name: b, file: prompts/b.md}\n", files: map[string]string{"prompts/b.md": md}},
		{
			name: "none", workers: "    - code-reviewr\n", files: map[string]string{"skills/code-reviewer/SKILL.md": md},
			want: []string{"5: there is no file for the worker code-reviewr"}, hint: "did you mean code-reviewer? Else define it here, `- {name: code-reviewr, tools: [Read, Grep]}`, or create workers/code-reviewr.md",
		},
		{
			name: "two", workers: "    - a\n", files: map[string]string{"workers/a.md": md, "a.agent": llmdo},
			want: []string{"5: the worker a has 2 files: workers/a.md and a.agent"}, hint: "say which one: `- {name: a, file: workers/a.md}`",
		},
		{name: "two, and said which", workers: "    - {name: a, file: a.agent}\n", files: map[string]string{"workers/a.md": md, "a.agent": llmdo}},
		{
			name: "twice in the list", workers: "    - a\n    - name: a\n", files: map[string]string{"workers/a.md": md},
			want: []string{"6: the worker a is listed twice [5]"}, hint: "`- {name: a-2, file: workers/a.md}`",
		},
		{
			name: "a file that isn't there", workers: "    - {name: a, file: b.md}\n",
			want: []string{"5: there is no file b.md"}, hint: "create workers/a.md",
		},
		{
			name: "no kind of worker file", workers: "    - {name: a, file: a.txt}\n", files: map[string]string{"a.txt": md},
			want: []string{"5: a.txt is not a worker file"},
		},
		{
			name: "another name in the file", workers: "    - a\n", files: map[string]string{"workers/a.md": "---\nname: b\nallowed-tools: []\n---\nDo.\n"},
			want: []string{`workers/a.md:2: the file calls its worker "b", the workshop calls it a [5]`},
		},
		{
			name: "several problems at once", workers: "    - a\n    - b\n    - c\n", files: map[string]string{"workers/b.md": "---\nname: b\n"},
			want: []string{
				"workers/b.md:1: the front matter that begins here doesn't end",
				"5: there is no file for the worker a",
				"7: there is no file for the worker c",
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, diags := Load(t.Context(), project(small+tt.workers, tt.files), "workshop.yaml", Options{})
			if diff := cmp.Diff(tt.want, places(diags)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !strings.Contains(fmt.Sprint(hints(diags)), tt.hint) {
				t.Errorf("hints %q, want %q", hints(diags), tt.hint)
			}
			if len(tt.want) == 0 && (w == nil || w.Workers[0].File == "" || w.Workers[0].Definition.Instructions != "Do.") {
				t.Errorf("workshop %+v", w)
			}
		})
	}
}

func hints(l diag.List) []string {
	var out []string
	for _, d := range l {
		out = append(out, d.Hint)
	}
	return out
}

// Every dialect's place is looked at, and named where nothing is found.
func TestEveryPlaceIsNamed(t *testing.T) {
	_, diags := Load(t.Context(), project(small+"    - a\n", nil), "workshop.yaml", Options{})
	for _, c := range worker.Candidates("a") {
		if !strings.Contains(diags[0].Detail, c.Path) {
			t.Errorf("%s isn't named: %s", c.Path, diags[0].Detail)
		}
	}
}

// Of two files for one worker, those that a worker may have written are named.
func TestFileOfAWorkerIsNamed(t *testing.T) {
	files := map[string]string{"workers/a.md": plainWorker, ".claude/agents/a.md": plainWorker}
	for mounts, want := range map[string]string{
		"[.:/w]":                          "",
		"[.:/w:rw]":                       "A worker may have written workers/a.md or .claude/agents/a.md, which a mount makes writable.",
		"[./.claude:/w:rw, ./workers:/r]": "A worker may have written .claude/agents/a.md, which a mount makes writable.",
	} {
		_, diags := Load(t.Context(), project(strings.Replace(small, "}", ", mounts: "+mounts+"}", 1)+"    - a\n", files), "workshop.yaml", Options{})
		if len(diags) != 1 || diags[0].Code != "worker-ambiguous" || diags[0].Detail != want {
			t.Errorf("%s: %v", mounts, diags)
		}
	}
}

// Paths are relative to the folder of workshop.yaml, wherever that is.
func TestWorkshopInAFolder(t *testing.T) {
	fsys := fstest.MapFS{
		"team/workshop.yaml":  {Data: []byte(small + "    - a\n    - {name: b, file: c.md}\n")},
		"team/workers/a.md":   {Data: []byte(plainWorker)},
		"team/c.md":           {Data: []byte("---\nallowed-tools: []\nresult_type: s.json\n---\nDo.\n")},
		"team/s.json":         {Data: []byte(`{"type": "string"}`)},
		"workers/a.md":        {Data: []byte("not this one")},
		"team/workers/b.md":   {Data: []byte("nor this one")},
		"elsewhere/secret.md": {Data: []byte(plainWorker)},
	}
	w, diags := Load(t.Context(), fsys, "team/workshop.yaml", Options{})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	if got := w.Workers[0].File + " " + w.Workers[1].File + " " + string(w.Workers[1].Definition.ResultType); got != `team/workers/a.md team/c.md {"type":"string"}` {
		t.Error(got)
	}
}

// A link must not bring a file from elsewhere into a workshop.
func TestLinksOutOfTheProject(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("private.md", plainWorker)
	write("p/real.md", plainWorker)
	write("p/workshop.yaml", small+"    - out\n    - absolute\n    - inside\n")
	write("p/workers/x.md", plainWorker)
	for name, target := range map[string]string{"out": "../../private.md", "absolute": filepath.Join(dir, "private.md"), "inside": "../real.md"} {
		if err := os.Symlink(target, filepath.Join(dir, "p/workers", name+".md")); err != nil {
			t.Skip("skipped: no symbolic links here")
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "p"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, p := range map[string]struct {
		fsys fs.FS
		file string
	}{
		"os.DirFS":          {os.DirFS(filepath.Join(dir, "p")), "workshop.yaml"},
		"os.Root":           {root.FS(), "workshop.yaml"},
		"a folder above it": {os.DirFS(dir), "p/workshop.yaml"},
	} {
		_, diags := Load(t.Context(), p.fsys, p.file, Options{})
		var got []string
		for _, d := range diags {
			got = append(got, fmt.Sprintf("%d %s", d.Range.Start.Line, d.Code))
		}
		if diff := cmp.Diff([]string{"5 worker-outside", "6 worker-outside"}, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%v", name, diff, diags)
		}
	}
}

func TestResultTypeFiles(t *testing.T) {
	for ref, want := range map[string]string{
		"s.json":       "",
		"../s.json":    "",
		"t.yaml":       "",
		"../../s.json": "the schema ../../s.json is outside of the project",
		"/s.json":      "the schema /s.json is outside of the project",
		"none.json":    "the schema workers/none.json can't be read",
		"bad.json":     "workers/bad.json is not a valid JSON Schema",
	} {
		_, diags := Load(t.Context(), project(small+"    - a\n", map[string]string{
			"workers/a.md": "---\nallowed-tools: []\nresult_type: " + ref + "\n---\nDo.\n",
			"s.json":       "true", "workers/s.json": "{}", "workers/t.yaml": "type: object\n", "workers/bad.json": `{"type": 1}`,
		}), "workshop.yaml", Options{})
		if got := diags.Error(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", ref, got, want)
		}
	}
}

// A thousand workers cost a thousand times what one costs, not a million.
func BenchmarkWorkers(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			fsys := manyWorkers(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, diags := Load(b.Context(), fsys, "workshop.yaml", Options{}); len(diags) > 0 {
					b.Fatal(diags)
				}
			}
		})
	}
}

// manyWorkers is on disk: a fstest.MapFS looks through all its files for one
// that isn't there.
func manyWorkers(tb testing.TB, n int) fs.FS {
	var yaml strings.Builder
	yaml.WriteString(small)
	files := map[string]string{}
	for i := range n {
		fmt.Fprintf(&yaml, "    - {name: w%d, container: {network: none, resources: {memory: 128M}}}\n", i)
		files[fmt.Sprintf("workers/w%d.md", i)] = fmt.Sprintf("---\nallowed-tools: Read\ndelegates-to: [w%d]\n---\nDo.\n", i+1)
	}
	files[fmt.Sprintf("workers/w%d.md", n-1)] = plainWorker
	files["workshop.yaml"] = yaml.String()
	dir := tb.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "workers"), 0o755); err != nil {
		tb.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return os.DirFS(dir)
}

// The limit of a workshop's workers loads without a problem.
func TestManyWorkers(t *testing.T) {
	w, diags := Load(t.Context(), manyWorkers(t, maxWorkers), "workshop.yaml", Options{})
	if len(diags) > 0 || len(w.Workers) != maxWorkers {
		t.Fatalf("%d diagnostics, first %v", len(diags), diags[:min(1, len(diags))])
	}
}
