package schemas_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/schemas"
	"github.com/llmdo/workshop/workshop"
)

func compile(t testing.TB, name string, data []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// value reads a YAML file as an editor's schema check does; ok is false where
// it isn't YAML, so that no schema sees it.
func value(t *testing.T, path string) (v any, ok bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var raw any
	if err := yaml.Load(data, &raw); err != nil {
		return nil, false
	}
	j, err := json.Marshal(raw)
	if err != nil {
		return nil, false
	}
	v, err = jsonschema.UnmarshalJSON(bytes.NewReader(j))
	return v, err == nil
}

func files(t *testing.T, patterns ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range patterns {
		paths, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".yaml")
			if name == "workshop" {
				name = filepath.Base(filepath.Dir(path))
			}
			out[name] = path
		}
	}
	if len(out) == 0 {
		t.Fatalf("no file for %v", patterns)
	}
	return out
}

// The schema accepts every file that the loader accepts.
func TestSchemaAcceptsValid(t *testing.T) {
	s := compile(t, "workshop.schema.json", schemas.Workshop)
	for name, path := range files(t, "../workshop/testdata/valid/*.yaml", "../workshop/testdata/valid/*/workshop.yaml", "../examples/*/workshop.yaml") {
		v, ok := value(t, path)
		if !ok {
			t.Errorf("%s: not YAML", name)
			continue
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The schema refuses every invalid case but these.
func TestSchemaRefusesInvalid(t *testing.T) {
	s := compile(t, "workshop.schema.json", schemas.Workshop)
	seen := map[string]bool{}
	for name, path := range files(t, "../workshop/testdata/invalid/*.yaml", "../workshop/testdata/invalid/*/workshop.yaml") {
		seen[name] = true
		v, ok := value(t, path)
		why, listed := beyond[name]
		if !ok {
			if listed {
				t.Errorf("%s is listed, but it isn't YAML: no schema sees it", name)
			}
			continue
		}
		switch err := s.Validate(v); {
		case err == nil && !listed:
			t.Errorf("%s: the schema accepts it; it should be refused, or be listed with the reason", name)
		case err != nil && listed:
			t.Errorf("%s: listed as beyond a schema (%s), but it refuses it", name, why)
		}
	}
	for name := range beyond {
		if !seen[name] {
			t.Errorf("%s is listed, but there is no such case", name)
		}
	}
}

// Every key of the schema stands in examples/full, or beside it.
func TestFullExampleHasEveryKey(t *testing.T) {
	var data []byte
	for _, path := range files(t, "../examples/full/workshop.yaml", "../examples/local-model/workshop.yaml", "../examples/shared/*/workshop.yaml") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, text...)
	}
	var schema map[string]any
	if err := json.Unmarshal(schemas.Workshop, &schema); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if p, ok := v["properties"].(map[string]any); ok {
				for k := range p {
					keys[k] = true
				}
			}
			for _, x := range v {
				walk(x)
			}
		case []any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(schema)
	for k := range keys {
		if !strings.Contains(string(data), k+":") && k != "signer" { // it would be somebody's key
			t.Errorf("no example shows the key %s", k)
		}
	}
}

// What the programs write fits its schema.
func TestDiagnosticsFitTheirSchema(t *testing.T) {
	s := compile(t, "diagnostics.schema.json", schemas.Diagnostics)
	fsys := os.DirFS("../workshop/testdata/invalid/delegation-cycle")
	_, l := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{})
	l = append(l, diag.Diagnostic{Severity: diag.Warning, Summary: "no place"})
	var b bytes.Buffer
	if err := diagtext.JSON(&b, l); err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
}

// The generated files are up to date.
func TestGenerated(t *testing.T) {
	if !bytes.Equal(workshop.Schema(), schemas.Workshop) {
		t.Error("workshop.schema.json differs from the types: run make generate")
	}
}

// TestVerifySchema: what verify prints fits its schema, and what it never prints doesn't.
func TestVerifySchema(t *testing.T) {
	s := compile(t, "verify.schema.json", schemas.Verify)
	r := verify.Report{Workshop: "w", Project: "p", Engine: "namespace", Lines: []verify.Line{}}
	fits := func() error {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return s.Validate(doc)
	}
	if err := fits(); err != nil {
		t.Errorf("an empty report: %v", err)
	}
	r.Add(verify.Line{Promise: "B1", Title: "t", Worker: "w", Verdict: verify.Held, Tried: "x", Inside: "x", Outside: "x", Control: "x"},
		verify.Line{Promise: "B2", Title: "t", Copy: true, Verdict: verify.Broken, Why: "x"}, verify.Line{Promise: "B3", Title: "t"})
	if err := fits(); err != nil {
		t.Errorf("a report: %v", err)
	}
	r.Lines[0].Verdict = "perhaps"
	if fits() == nil {
		t.Error("another verdict fits")
	}
}
