package session

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/llmdo/workshop/tool"
)

func TestRender(t *testing.T) {
	const goesOn = "line 1 is longer than max_bytes and is cut; with binary, it goes on at offset 1; the next line is first_line 2"
	for _, c := range []struct {
		name   string
		result any
		want   string
	}{
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "a", Bytes: 1}, ExitCode: 1, Note: "n"}, "a\n[exit code 1]\n[n]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "a…b", Bytes: 100, Omitted: 90, Binary: true}}, "a…b\n[stdout: 90 of 100 bytes left out; filter the output, or set max_output_bytes; stdout is not all text: bytes that are not UTF-8 are replaced]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "a…b", Bytes: 100, Omitted: 90, NextLine: 7, File: "/scratch/1"}}, "a…b\n[stdout: 90 of 100 bytes left out; the whole output is in /scratch/1 until the session ends: use read_file with first_line 7]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "a…b", Bytes: 100, Omitted: 90, NextOffset: 5, File: "/scratch/\x1b1", Binary: true}}, "a…b\n[stdout: 90 of 100 bytes left out; the whole output is in /scratch/\\x1b1 until the session ends: use read_file with binary and offset 5; stdout is not all text: bytes that are not UTF-8 are replaced]"},
		{tool.Shell, tool.ShellResult{TimedOut: true, Signal: "SIGKILL", ExitCode: 137, DurationMS: 1500, Stderr: tool.Output{Text: "e\n", Bytes: 2}}, "[stderr]\ne\n[timed out after 1.5 s; all that it started was killed]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "a…b", Bytes: 100, Omitted: 90, NextLine: 7, File: "/scratch/1", FileOmitted: 50}}, "a…b\n[stdout: 90 of 100 bytes left out; not the whole output, but its first and last 25 bytes are in /scratch/1 until the session ends: use read_file with first_line 7]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: "\x00\uFFFD", Bytes: 2, Binary: true}}, "\x00\uFFFD\n[stdout is not all text: bytes that are not UTF-8 are replaced]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: strings.Repeat("ab\uFFFD", 100), Bytes: 300, Binary: true}}, "[stdout: 300 bytes that are not text, not shown; to see them, pipe them through base64 or od]"},
		{tool.Shell, tool.ShellResult{Stdout: tool.Output{Text: strings.Repeat("ab\uFFFD", 100), Bytes: 3000, Omitted: 2700, NextOffset: 150, File: "/scratch/1", Binary: true}}, "[stdout: 3000 bytes that are not text, not shown; the whole output is in /scratch/1 until the session ends: use read_file with binary and offset 0]"},
		{tool.ReadFile, tool.ReadFileResult{Path: "f", Content: "x\n", Truncated: true, NextLine: 2}, "x\n[the file goes on; read it with first_line 2]"},
		{tool.ReadFile, tool.ReadFileResult{Path: "f", Content: "x", Truncated: true, NextLine: 2, Note: goesOn}, "x\n[" + goesOn + "]"},
		{tool.ReadFile, tool.ReadFileResult{Path: "f"}, "[f is empty]"},
		{tool.ReadFile, tool.ReadFileResult{Path: "f", Content: "x", Note: "n"}, "x\n[n]"},
		{tool.ReadFile, tool.ReadFileResult{Path: "f", Content: "AA==", Binary: true, Size: 1}, "[base64 of f, 1 byte]\nAA=="},
		{tool.WriteFile, tool.WriteFileResult{Path: "f", Bytes: 3, Created: true}, "Made f, 3 bytes."},
		{tool.EditFile, tool.EditFileResult{Path: "f", Replacements: 2, Lines: []int{1, 5}}, "Replaced 2 in f, lines 1, 5."},
		{tool.EditFile, tool.EditFileResult{Path: "f", Replacements: 2, Lines: []int{8, 8}}, "Replaced 2 in f, line 8."},
		{tool.ListFiles, tool.ListFilesResult{Path: ".", Entries: []tool.Entry{{Path: "a", Type: "directory"}, {Path: "b", Type: "file"}, {Path: "c", Type: "symlink", Target: "b"}}, Truncated: true}, "a/\nb\nc -> b\n[there are more than these 3]"},
		{tool.ListFiles, tool.ListFilesResult{Path: ".", Entries: []tool.Entry{{Path: "a", Type: "file"}}, Truncated: true}, "a\n[there are more than this one]"},
		{tool.ListFiles, tool.ListFilesResult{Path: ".", Entries: []tool.Entry{{Path: "a\nb", Type: "file"}}}, `a\x0ab` + "\n" + escapedNote},
		{tool.ListFiles, tool.ListFilesResult{Path: "x", Entries: []tool.Entry{}}, "[nothing in x]"},
		{tool.SearchFiles, tool.SearchFilesResult{Matches: []tool.Match{{Path: "a\u200b"}}, Truncated: true}, `a\u200b` + "\n" + escapedNote + "\n[there may be more than this one]"},
		{tool.SearchFiles, tool.SearchFilesResult{Matches: []tool.Match{{Path: "f", Line: 2, Text: "hit", Before: []string{"one"}, After: []string{"three"}}, {Path: "g", Line: 9, Text: "hit"}}}, "f-1-one\nf:2:hit\nf-3-three\ng:9:hit"},
		{tool.SearchFiles, tool.SearchFilesResult{Matches: []tool.Match{}, FilesSearched: 4}, "[no match; files searched: 4]"},
		{tool.FetchURL, tool.FetchURLResult{URL: "https://example.org/", Status: 200, ContentType: "text/plain", Body: "hi\n", Truncated: true}, "HTTP 200, text/plain, https://example.org/\n\nhi\n[the body goes on]"},
	} {
		raw, err := json.Marshal(c.result)
		if err != nil {
			t.Fatal(err)
		}
		r := render(c.name, raw, true)
		if got := textOf(r); got != c.want || string(r.Structured) != string(raw) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A model without read_file is told of the programs that read the file.
func TestRenderWithoutReadFile(t *testing.T) {
	for want, o := range map[string]tool.Output{
		"tail -n +7": {Text: "a…b", Bytes: 100, Omitted: 90, NextLine: 7, File: "/scratch/1"},
		"tail -c +6": {Text: "a…b", Bytes: 100, Omitted: 90, NextOffset: 5, File: "/scratch/1"},
	} {
		raw, err := json.Marshal(tool.ShellResult{Stdout: o})
		if err != nil {
			t.Fatal(err)
		}
		if got := textOf(render(tool.Shell, raw, false)); !strings.HasSuffix(got, ": use "+want+"]") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Each tool has its schemas, and what its types say stands in them.
func TestSchemas(t *testing.T) {
	for _, d := range Described() {
		var in, out struct {
			Type                 string
			Properties           map[string]json.RawMessage
			Required             []string
			AdditionalProperties any
		}
		if json.Unmarshal(d.InputSchema, &in) != nil || json.Unmarshal(d.OutputSchema, &out) != nil {
			t.Fatalf("%s: %s %s", d.Name, d.InputSchema, d.OutputSchema)
		}
		if in.Type != "object" || out.Type != "object" || len(in.Properties) == 0 || reflect.DeepEqual(in.AdditionalProperties, nil) || strings.Contains(string(d.InputSchema)+string(d.OutputSchema), "null") {
			t.Errorf("%s: %s %s", d.Name, d.InputSchema, d.OutputSchema)
		}
	}
	for name, properties := range limits {
		spec, ok := tool.Find(name)
		if !ok {
			t.Fatalf("there is no tool %s", name)
		}
		s := schemaOf(spec.Args, name).is
		for p := range properties {
			if s.Properties[p] == nil {
				t.Errorf("%s has no argument %s", name, p)
			}
		}
	}
	s := string(schemaOf(tool.ShellArgs{}, tool.Shell).json)
	for _, want := range []string{`"maximum":4194304`, `"default":16384`, `"maxItems":1024`, `"minimum":0`} {
		if !strings.Contains(s, want) {
			t.Errorf("%s has no %s", s, want)
		}
	}
}

// Whatever the arguments are: an answer, and none that the toolbox would take
// where this refuses for its form.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"path":"x"}`, `{"command":"x","argv":["a"]}`, `{"argv":[1]}`, `[]`, `null`, `{"path":1,"path":2}`, `{"PATH":"x"}`, `{"env":{"A":1}}`, `{"max_bytes":1e99}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, spec := range tool.Specs() {
			if checkArguments(spec.Name, schemaOf(spec.Args, spec.Name), data) != nil {
				continue
			}
			into := reflect.New(reflect.TypeOf(spec.Args))
			if err := tool.Decode(data, into.Interface()); err != nil && json.Valid(data) && !strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Errorf("%s: %s passes the schema, but: %v", spec.Name, data, err)
			}
		}
	})
}

// A name is one line, whatever it is: a worker makes it.
func TestNamesAreOneLine(t *testing.T) {
	name := "a\nb -> c\x1b[2J\u202e"
	for what, got := range map[string]string{
		"list":   listText(&tool.ListFilesResult{Entries: []tool.Entry{{Path: name}, {Path: name, Type: "directory"}, {Path: "l", Type: "symlink", Target: name}}}),
		"search": searchText(&tool.SearchFilesResult{Matches: []tool.Match{{Path: name}, {Path: name, Line: 1, Text: "x"}, {Path: name, Line: 3, Text: "x", Before: []string{"y"}}}}),
	} {
		if strings.ContainsAny(got, "\x1b\u202e") || strings.Contains(got, "a\nb") || !strings.Contains(got, `a\x0ab -> c\x1b[2J\u202e`) {
			t.Errorf("%s: %q", what, got)
		}
	}
}
