// Command schemagen writes the JSON Schemas of package schemas into a
// directory: `go run ./internal/dev/schemagen schemas`, or `make generate`.
package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/request"
	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/session"
	"github.com/llmdo/workshop/internal/session/approval"
	"github.com/llmdo/workshop/internal/session/audit"
	"github.com/llmdo/workshop/internal/verify"
	"github.com/llmdo/workshop/workshop"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: schemagen DIR")
		os.Exit(2)
	}
	for name, data := range generate() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), data, 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "schemagen:", err)
			os.Exit(1)
		}
	}
}

// generate returns the schemas by file name.
func generate() map[string][]byte {
	return map[string][]byte{
		"workshop.schema.json":    workshop.Schema(),
		"policy.schema.json":      reflected(&firewall.Policy{}, "policy", "guard/policy.json"),
		"diagnostics.schema.json": reflected(&diagtext.Report{}, "diagnostics", "validate --format json"),
		"tools.schema.json":       tools(),
		"event.schema.json":       reflected(&events.Line{}, "event", "one line of the guard's log"),
		"audit.schema.json":       reflected(&audit.Event{}, "audit", "one line of the audit of calls"),
		"approval.schema.json":    approvals(),
		"verify.schema.json":      reflected(&verify.Report{}, "verify", "verify --format json"),
	}
}

// approvals is the schema of a question for a program, and of its answer.
func approvals() []byte {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: textType}
	q, a := r.Reflect(&approval.Message{}), r.Reflect(&approval.Reply{})
	q.Version, a.Version = "", ""
	q.Title, a.Title = "the question", "the answer"
	s := &jsonschema.Schema{
		Version: jsonschema.Version, ID: "https://github.com/llmdo/workshop/schemas/approval.schema.json",
		Title: "approvals_command and approvals_socket", OneOf: []*jsonschema.Schema{q, a},
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(out, '\n')
}

// reflected makes a schema of a type that encoding/json writes.
func reflected(v any, name, title string) []byte {
	r := &jsonschema.Reflector{Anonymous: true, DoNotReference: false, Mapper: textType, Namer: func(t reflect.Type) string {
		if t == reflect.TypeFor[request.Rule]() {
			return "RequestRule" // firewall.Rule is another
		}
		return ""
	}}
	s := r.Reflect(v)
	s.ID = jsonschema.ID("https://github.com/llmdo/workshop/schemas/" + name + ".schema.json")
	s.Title = title
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(out, '\n')
}

// tools makes the schema of a call of a tool, with those of its arguments and
// its result as definitions: "shell.arguments", "shell.result".
func tools() []byte {
	type object = map[string]any
	defs, calls := object{}, []object{}
	for _, t := range session.Described() {
		defs[t.Name+".arguments"], defs[t.Name+".result"] = t.InputSchema, t.OutputSchema
		name := object{"const": t.Name}
		if strings.HasSuffix(t.Name, "WORKER") {
			name = object{"type": "string", "pattern": "^" + strings.TrimSuffix(t.Name, "WORKER") + "[a-z0-9]"}
		}
		calls = append(calls, object{
			"title": t.Title, "description": t.Description,
			"type": "object", "required": []string{"tool"}, "additionalProperties": false,
			"properties": object{"tool": name, "arguments": object{"$ref": "#/$defs/" + t.Name + ".arguments"}},
		})
	}
	out, err := json.MarshalIndent(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id":     "https://github.com/llmdo/workshop/schemas/tools.schema.json",
		"title":   "a call of a tool of a worker; $defs has the arguments and the result of each tool",
		"oneOf":   calls, "$defs": defs,
	}, "", "  ")
	if err != nil {
		panic(err)
	}
	return append(out, '\n')
}

// textType gives the schemas of types that are written as text.
func textType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[approval.Answer]():
		return &jsonschema.Schema{Type: "string", Enum: []any{string(approval.No), string(approval.Once), string(approval.Session), string(approval.Always)}}
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{} // anything
	case reflect.TypeFor[firewall.Mode]():
		return &jsonschema.Schema{Type: "string", Enum: []any{"none", "restricted", "open"}}
	case reflect.TypeFor[firewall.PortRange]():
		return &jsonschema.Schema{Type: "string", Pattern: `^[0-9]+(-[0-9]+)?$`}
	case reflect.TypeFor[events.Kind]():
		return &jsonschema.Schema{Type: "string", Enum: texts(events.Kinds)}
	case reflect.TypeFor[verify.Verdict]():
		return &jsonschema.Schema{Type: "string", Enum: texts(verify.Verdicts)}
	case reflect.TypeFor[events.Verdict]():
		return &jsonschema.Schema{Type: "string", Enum: texts(events.Verdicts)}
	case reflect.TypeFor[firewall.Budget]():
		return &jsonschema.Schema{Type: "string", Pattern: `^[1-9][0-9]{0,15}[KMG]?/[mhd]$`}
	case reflect.TypeFor[firewall.HostPattern](), reflect.TypeFor[netip.Prefix](),
		reflect.TypeFor[request.Rule](), reflect.TypeFor[request.Ref](), reflect.TypeFor[request.Repository]():
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

func texts[T ~string](values []T) (out []any) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}
