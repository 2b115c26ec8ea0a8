package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// The schemas of what is reflected are up to date; that of workshop.yaml is
// tested where it is made.
func TestUpToDate(t *testing.T) {
	for name, data := range generate() {
		if name == "workshop.schema.json" {
			continue
		}
		have, err := os.ReadFile(filepath.Join("..", "..", "..", "schemas", name))
		if err != nil || !bytes.Equal(have, data) {
			t.Errorf("%s differs from the types (%v): run make generate", name, err)
		}
	}
}

// Events fit their schema, and what isn't one doesn't.
func TestEventSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(generate()["event.schema.json"]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("event", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("event")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := events.NewSink(&out, func(string) []string { return []string{"alice"} })
	for _, k := range events.Kinds {
		for _, v := range events.Verdicts {
			s.Add(events.Event{Room: "r", Kind: k, Verdict: v, Reason: firewall.ReasonName, Name: "a.example.org", Address: "198.51.100.1", Port: 443, Protocol: "tcp", Rule: "workshop.yaml:3", Suggest: "x", BytesUp: 1, BytesDown: 1 << 63})
		}
	}
	s.Add(events.Event{Kind: events.Guard, Verdict: events.Note, Reason: "x"})
	s.Close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(events.Kinds)*len(events.Verdicts)+1 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range append(lines, `{"kind":"dns"}`, strings.Replace(lines[0], `"room"`, `"path"`, 1), strings.Replace(lines[0], `"verdict":"`, `"verdict":"x`, 1)) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(l))
		if err != nil {
			t.Fatal(err)
		}
		if err, want := schema.Validate(v), strings.Contains(out.String(), l); (err == nil) != want {
			t.Errorf("%s: %v", l, err)
		}
	}
}

// A policy with endpoints fits its schema.
func TestPolicySchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(generate()["policy.schema.json"]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("policy", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy")
	if err != nil {
		t.Fatal(err)
	}
	text := `{"version":1,"workshop":"w","rooms":[{"room":"r","workers":["a"],"mode":"restricted","deny":[],"allow":[
		{"host":"a.example.org","ports":["443"],"line":"workshop.yaml:1","endpoint":{"at":"a","port":600,"requests":["GET /x"]}},
		{"host":"b.example.org","ports":["443"],"line":"workshop.yaml:2","endpoint":{"at":"b","port":601,"git":{"read":["a/b"],"push":[{"repository":"a/b","refs":["agent/*"]}]}}}]}]}`
	if _, err := firewall.ParsePolicy([]byte(text)); err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Error(err)
	}
}

// Calls fit the schema of tools, and what isn't one doesn't.
func TestToolsSchema(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(generate()["tools.schema.json"]))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("tools", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("tools")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Compile("tools#/$defs/shell.result"); err != nil {
		t.Error(err)
	}
	for call, fits := range map[string]bool{
		`{"tool":"shell","arguments":{"argv":["go","test"],"env":{"A":"b"}}}`:       true,
		`{"tool":"read_file","arguments":{"path":"x","max_bytes":4194304}}`:         true,
		`{"tool":"delegate_reviewer","arguments":{"task":"x"}}`:                     true,
		`{"tool":"end_delegation"}`:                                                 true,
		`{"tool":"rm","arguments":{}}`:                                              false,
		`{"tool":"read_file","arguments":{}}`:                                       false,
		`{"tool":"read_file","arguments":{"path":"x","max_bytes":4194305}}`:         false,
		`{"tool":"read_file","arguments":{"path":"x","nope":1}}`:                    false,
		`{"tool":"shell","arguments":{"argv":"go test"}}`:                           false,
		`{"tool":"read_file","arguments":{"path":"x"},"worker":"not a part of it"}`: false,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(call))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != fits {
			t.Errorf("%s: %v", call, err)
		}
	}
}
