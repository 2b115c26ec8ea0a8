package worker

import (
	"strings"
	"testing"
)

func TestResultType(t *testing.T) {
	for _, tt := range []struct{ name, path, in, schema, file, want string }{
		{"inline", "workers/a.md", "result_type: {type: object, properties: {score: {type: integer, maximum: 10}}}", `{"properties":{"score":{"maximum":10,"type":"integer"}},"type":"object"}`, "", ""},
		{"file", "workers/a.md", "result_type: ../schemas/report.json", "", "../schemas/report.json", ""},
		{"llm-do's key", "workers/a.worker", "output_schema_ref: report.json", "", "report.json", ""},
		{"a Python class, in llm-do's form", "workers/a.worker", "output_schema_ref: models:Report", "", "", `"models:Report" names a Python type, which only llm-do can read: results aren't checked`},
		{"a Python class, in ours", "workers/a.md", "result_type: models:Report", "", "", `"models:Report" is not a file with a JSON Schema`},
		{"a URL", "workers/a.md", "result_type: https://example.org/a.json", "", "", `"https://example.org/a.json" is not a file with a JSON Schema`},
		{"a number", "workers/a.md", "result_type: 5", "", "", `result_type must be a JSON Schema or a file, found "5"`},
		{"both keys", "workers/a.md", "result_type: a.json\noutput_schema_ref: b.json", "", "", "result_type and output_schema_ref are the same"},
		{"not a schema", "workers/a.md", "result_type: {type: objekt}", "", "", "result_type is not a valid JSON Schema: at '/type'"},
		{"a reference to elsewhere", "workers/a.md", "result_type: {$ref: 'https://example.org/a.json'}", "", "", "it refers to https://example.org/a.json"},
		{"a file of the machine", "workers/a.md", "result_type: {$ref: 'file:///etc/passwd'}", "", "", "it refers to file:///etc/passwd"},
		{"an alias bomb", "workers/a.md", "result_type:\n  a: &a [" + strings.Repeat("x,", 200) + "x]\n  b: &b [" + strings.Repeat("*a,", 200) + "*a]\n  c: [" + strings.Repeat("*b,", 200) + "*b]", "", "", "it has too many parts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := "allowed-tools: []\n"
			if strings.HasSuffix(tt.path, ".worker") {
				list = "toolsets: []\n"
			}
			def, diags := Parse(tt.path, []byte("---\nname: a\n"+list+tt.in+"\n---\nDo.\n"), "")
			if string(def.ResultType) != tt.schema || def.ResultFile.Name != tt.file {
				t.Errorf("schema %s, file %q; want %s, %q", def.ResultType, def.ResultFile.Name, tt.schema, tt.file)
			}
			switch {
			case tt.want == "" && len(diags) > 0:
				t.Errorf("unexpected: %v", diags)
			case tt.want != "" && (len(diags) != 1 || !strings.Contains(diags[0].Summary, tt.want)):
				t.Errorf("got %v, want %q", diags, tt.want)
			}
		})
	}
}

func TestSchemaFile(t *testing.T) {
	for name, data := range map[string]string{
		"a.json": `{"type": "object"}`,
		"a.yaml": "type: object\n",
	} {
		got, err := new(Schemas).File(name, []byte(data))
		if err != nil || string(got) != `{"type":"object"}` {
			t.Errorf("File(%s) = %s, %v", name, got, err)
		}
	}
	for name, data := range map[string]string{"a.json": "{", "b.json": `{"type": 5}`, "c.yaml": "a: b: c"} {
		if got, err := new(Schemas).File(name, []byte(data)); err == nil {
			t.Errorf("File(%s) = %s, want an error", name, got)
		}
	}
}
