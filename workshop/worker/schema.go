package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// MaxSchema is the largest JSON Schema of a result type, in bytes, and
// maxSchemaDepth how deep its objects and lists nest: the library reads what is
// inside of each one again.
const (
	MaxSchema      = 256 << 10
	maxSchemaDepth = 64
)

// resultType reads what the worker gives back: a JSON Schema written down, or
// the path of a file that holds one. python reports whether the dialect's own
// programs also take the name of a Python class there.
func (f *file) resultType(python bool) {
	var given []*field
	for _, name := range []string{"result_type", "output_schema_ref"} {
		if fd := f.take(name); fd != nil {
			given = append(given, fd)
		}
	}
	if len(given) == 0 {
		return
	}
	if len(given) > 1 {
		f.tell(diag.Diagnostic{Severity: diag.Error, Code: "worker-result-type",
			Summary: "result_type and output_schema_ref are the same", Hint: "keep one of them", Range: f.rangeOf(given[1].key),
			Related: []diag.Related{{Message: "the other one", Range: f.rangeOf(given[0].key)}}})
		return
	}
	fd := given[0]
	v := resolve(fd.value)
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
		f.resultFile(fd, v.Value, python)
		return
	}
	if v.Kind != yaml.MappingNode {
		f.report(diag.Error, "worker-result-type", f.rangeOf(fd.value), "write a JSON Schema such as `{type: object}`, or the path of a .json file", "%s must be a JSON Schema or a file, found %s", fd.name, kindName(v))
		return
	}
	budget := maxNodes
	val, err := jsonValue(v, &budget)
	var data []byte
	if err == nil {
		data, err = json.Marshal(val)
	}
	if err == nil {
		data, err = f.schemas.Compile(fd.name, data)
	}
	if err != nil {
		f.report(diag.Error, "worker-result-type", f.rangeOf(fd.value), "correct it, or write the path of a .json file that holds the schema", "%s is not a valid JSON Schema: %v", fd.name, err)
		return
	}
	f.def.ResultType = data
}

func (f *file) resultFile(fd *field, ref string, python bool) {
	at := f.rangeOf(fd.value)
	if slices.Contains([]string{".json", ".yaml", ".yml"}, path.Ext(ref)) && !strings.Contains(ref, "://") {
		f.def.ResultFile = Reference{Name: ref, Source: diag.Source{Range: at}}
		return
	}
	const hint = "write the path of a .json or .yaml file that holds a JSON Schema, or the schema itself"
	if python {
		f.report(diag.Warning, "worker-result-type", at, hint, "%q names a Python type, which only llm-do can read: results aren't checked", shorten(ref))
		f.keep(fd)
		return
	}
	f.report(diag.Error, "worker-result-type", at, hint, "%q is not a file with a JSON Schema", shorten(ref))
}

// File reads a file that holds a JSON Schema, as JSON or YAML, and gives it as
// JSON.
func (s *Schemas) File(name string, data []byte) ([]byte, error) {
	if len(data) > MaxSchema {
		return nil, errors.New("it is larger than 256 KiB")
	}
	if c, bad := yamltext.Check(data, len(newText(name, data).bom())); bad {
		return nil, fmt.Errorf("line %d: %s; %s", bytes.Count(data[:c.At], []byte{'\n'})+1, c.Summary, c.Hint)
	}
	if path.Ext(name) == ".json" {
		return s.Compile(name, data)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("line %d: %s", errorLine(err), yamlMessage(err))
	}
	budget := maxNodes
	val, err := jsonValue(&doc, &budget)
	if err != nil {
		return nil, err
	}
	if data, err = json.Marshal(val); err != nil {
		return nil, err
	}
	return s.Compile(name, data)
}

func (s *Schemas) compile(_ string, data []byte) ([]byte, error) {
	if len(data) > MaxSchema {
		return nil, errors.New("it is larger than 256 KiB")
	}
	if err := s.spend(data); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var doc json.RawMessage
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("trailing data after the schema")
	}
	if err := s.check(data); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func errorLine(err error) int {
	var le *yaml.LoadError
	if errors.As(err, &le) {
		return le.Mark.Line
	}
	return 0
}

// jsonValue turns a YAML node into what encoding/json writes. The budget
// bounds the number of nodes, aliases counted each time.
func jsonValue(n *yaml.Node, budget *int) (any, error) {
	// A long text costs as much as many nodes: an alias repeats it.
	if *budget -= 1 + len(n.Value)/32; *budget < 0 {
		return nil, errors.New("it has too many parts")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 1 {
			return jsonValue(n.Content[0], budget)
		}
		return nil, nil
	case yaml.AliasNode:
		return jsonValue(n.Alias, budget)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			v, err := jsonValue(c, budget)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := resolve(n.Content[i])
			if _, twice := out[k.Value]; twice || k.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("line %d: the key %q is given twice, or is not a word", k.Line, shorten(k.Value))
			}
			v, err := jsonValue(n.Content[i+1], budget)
			if err != nil {
				return nil, err
			}
			out[k.Value] = v
		}
		return out, nil
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strconv.ParseBool(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value), nil
		}
		var v any
		err := n.Decode(&v)
		return v, err
	}
	return n.Value, nil
}
