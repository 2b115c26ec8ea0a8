package workshop

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/hostpath"
)

// SchemaID names the JSON Schema of workshop.yaml.
const SchemaID = "https://github.com/llmdo/workshop/schemas/workshop.schema.json"

// Schema returns the JSON Schema (2020-12) of workshop.yaml, made from the
// types that the loader decodes into. It is for editors: what it accepts may
// still be refused by Load, which knows files, variables and the rules between
// keys; what Load accepts, it accepts.
func Schema() []byte {
	g := &schemaMaker{defs: map[string]any{}}
	root := g.form(reflect.TypeFor[document]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "workshop.yaml"
	root["$defs"] = g.defs
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps of strings and numbers
	}
	return append(out, '\n')
}

type object = map[string]any

// schemaMaker collects the definitions of a schema.
type schemaMaker struct {
	defs   object
	worker bool // below a worker's container
}

// described is a type with more than one form, or with rules between its keys.
type described interface{ schema(g *schemaMaker) object }

// define puts a schema into $defs once and returns a reference to it.
func (g *schemaMaker) define(name string, content func() object) object {
	if g.worker && (name == "container" || name == "secret" || name == "cache" || name == "network" || name == "mount") {
		name = "worker-" + name // the ones that differ
	}
	if _, done := g.defs[name]; !done {
		g.defs[name] = object{} // stops a recursion
		g.defs[name] = content()
	}
	return object{"$ref": "#/$defs/" + name}
}

// form is the schema of a mapping with the keys of a struct type.
func (g *schemaMaker) form(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range formOf(t).fields {
		s := g.of(f.typ, f)
		if f.doc != "" {
			s["description"] = f.doc
		}
		if f.absent != "" {
			s["default"] = absentValue(f.absent)
		}
		properties[f.keyName] = s
		if f.required {
			required = append(required, f.keyName)
		}
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	if x, ok := reflect.New(t).Interface().(refined); ok {
		x.refine(out, properties, g)
	}
	return out
}

// absentValue is a default as JSON has it.
func absentValue(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text // a word
	}
	return v
}

// refined is a form whose schema says more than its tags.
type refined interface {
	refine(form, properties object, g *schemaMaker)
}

// of is the schema of a value of a type.
func (g *schemaMaker) of(t reflect.Type, f *field) object {
	if t.Kind() == reflect.Pointer {
		return g.of(t.Elem(), f)
	}
	if x, ok := reflect.New(t).Interface().(described); ok {
		return x.schema(g)
	}
	if strings.HasPrefix(t.Name(), "Value[") {
		v, _ := t.FieldByName("V")
		return g.scalar(v.Type, f)
	}
	switch t.Kind() {
	case reflect.Slice:
		return object{"type": "array", "items": g.of(t.Elem(), f), "maxItems": maxItems}
	case reflect.Map:
		out := object{"type": "object", "additionalProperties": g.of(t.Elem(), f)}
		if f.names != "" {
			out["propertyNames"] = object{"pattern": rulePatterns[f.names]}
		}
		return out
	case reflect.Struct:
		name := strings.TrimSuffix(strings.TrimPrefix(t.Name(), "partial"), "Form")
		return g.define(strings.ToLower(name), func() object { return g.form(t) })
	}
	panic(fmt.Sprintf("workshop: no schema for %s", t))
}

// rulePatterns are the rules of rules.go as far as a pattern can say them.
var rulePatterns = map[string]string{
	"name":        namePattern,
	"envname":     envNamePattern,
	"secretname":  secretNamePattern,
	"cachename":   cacheNamePattern,
	"servername":  serverPattern,
	"source":      sourcePattern,
	"fingerprint": keyPattern,
	"modelfile":   modelFilePattern,
	"sha256":      sha256Pattern,
	"uidgid":      `^[1-9][0-9]{0,9}(:[1-9][0-9]{0,9})?$`,
	"stage":       targetPattern,
	"runtime":     runtimePattern,
	"imageref":    `^((oci|docker-archive):[^~:\\\n][^:\\\n]*(:[^\s]+)?|[a-z0-9][^\sA-Z~]*(:[A-Za-z0-9_.-]+)?(@[^\s]+)?)$`,
	"abspath":     `^/([^/]+(/[^/]+)*)?$`,
	"oneline":     `^[^\n\r]*$`,
	"text":        `\S`,
	"semver":      `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`,
}

// variablePattern is text that has a variable: its value is not known.
const variablePattern = `\$`

// scalar is the schema of a Value.
func (g *schemaMaker) scalar(t reflect.Type, f *field) object {
	patterns, enum, bounds := []string{}, []string(nil), object{}
	for rule := range strings.SplitSeq(f.validate, ",") {
		name, param, _ := strings.Cut(rule, "=")
		n, _ := strconv.ParseFloat(param, 64)
		switch {
		case name == "oneof":
			enum = strings.Fields(param)
		case name == "min":
			bounds["minimum"] = n
		case name == "max":
			bounds["maximum"] = n
		case rulePatterns[name] != "":
			patterns = append(patterns, rulePatterns[name])
		}
	}
	variables := f.literal == ""
	switch t {
	case reflect.TypeFor[string](), reflect.TypeFor[PullPolicy](), reflect.TypeFor[Kernel](), reflect.TypeFor[Isolation](), reflect.TypeFor[Approval]():
		return g.text(patterns, enum, variables, f.number)
	case reflect.TypeFor[firewall.Mode]():
		return object{"enum": []string{"none", "restricted", "open"}}
	case reflect.TypeFor[bool]():
		return object{"type": "boolean"}
	case reflect.TypeFor[Size]():
		bounds["type"] = "integer"
		return object{"anyOf": []object{bounds, {"type": "string", "pattern": withVariable(`^([0-9]+(\.[0-9]*)?|\.[0-9]+) ?([bB]|[kKmMgGtTpP]([iI]?[bB])?)?$`, variables)}}}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": withVariable(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`, variables)}
	case reflect.TypeFor[float64]():
		bounds["type"] = "number"
		return object{"anyOf": []object{bounds, {"type": "string", "pattern": withVariable(`^[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?$`, variables)}}}
	case reflect.TypeFor[int64]():
		bounds["type"] = "integer"
		return object{"anyOf": []object{bounds, {"type": "string", "pattern": withVariable(`^[0-9]+$`, variables)}}}
	case reflect.TypeFor[uint16]():
		return object{"anyOf": []object{{"type": "integer", "minimum": 1, "maximum": 65535}, {"type": "string", "pattern": withVariable(`^[1-9][0-9]{0,4}$`, variables)}}}
	}
	panic(fmt.Sprintf("workshop: no schema for a value of %s", t))
}

func withVariable(pattern string, variables bool) string {
	if !variables {
		return pattern
	}
	return pattern + "|" + variablePattern
}

// text is the schema of a string, or of one that may be written as a number.
func (g *schemaMaker) text(patterns, enum []string, variables, number bool) object {
	out := object{"type": "string", "maxLength": maxScalar}
	if number && !slices.Contains(patterns, rulePatterns["semver"]) {
		out["type"] = []string{"string", "number", "boolean"}
	}
	if slices.Contains(patterns, rulePatterns["uidgid"]) {
		out["type"] = []string{"string", "integer"}
		out["minimum"], out["maximum"] = 1, 1<<31-1
		reserved := fmt.Sprintf("(%d|%d)", outletID, guardID)
		out["not"] = object{"anyOf": []object{{"enum": []int{outletID, guardID}}, {"type": "string", "pattern": "^" + reserved + "(:|$)|:" + reserved + "$"}}}
	}
	switch {
	case enum != nil && variables:
		return object{"anyOf": []object{{"enum": enum}, {"type": "string", "pattern": variablePattern}}}
	case enum != nil:
		return object{"enum": enum}
	case len(patterns) == 1:
		out["pattern"] = withVariable(patterns[0], variables)
	case len(patterns) > 1:
		var all []object
		for _, p := range patterns {
			all = append(all, object{"pattern": withVariable(p, variables)})
		}
		out["allOf"] = all
	}
	return out
}

func (c *partialContainer) schema(g *schemaMaker) object {
	return g.define("container", func() object {
		out := g.form(reflect.TypeFor[partialContainer]())
		properties := out["properties"].(object)
		for _, key := range []string{"mounts", "ports", "secrets", "caches"} {
			properties[key].(object)["uniqueItems"] = true
		}
		out["not"] = object{"required": []string{"image", "build"}}
		if g.worker {
			delete(properties, "runtime") // the workshop's alone
		}
		return out
	})
}

func (c *grantedContainer) schema(g *schemaMaker) object {
	outer := g.worker
	g.worker = true
	defer func() { g.worker = outer }()
	return c.partialContainer.schema(g)
}

func (w *partialNetwork) schema(g *schemaMaker) object {
	return g.define("network", func() object {
		return object{"anyOf": []object{{"enum": []string{"none", "restricted", "open"}}, g.form(reflect.TypeFor[networkForm]())}}
	})
}

func (*networkForm) refine(form, properties object, g *schemaMaker) {
	form["if"] = object{"properties": object{"mode": object{"const": "none"}}, "required": []string{"mode"}}
	form["then"] = object{"properties": object{"allow": object{"maxItems": 0}}}
	properties["dns"].(object)["items"] = object{"type": "string", "pattern": withVariable(`^([0-9a-fA-F.:]+|\[[0-9a-fA-F:]+\]:[0-9]+)$`, true)}
	properties["dns"].(object)["maxItems"] = firewall.MaxResolvers
	properties["proxy"].(object)["pattern"] = withVariable(proxyPattern+`|^$`, true)
	if g.worker { // the workshop's alone
		delete(properties, "dns")
		delete(properties, "proxy")
		return
	}
	form["dependentRequired"] = object{"allow": []string{"mode"}}
}

// hostPattern is a line of allow or deny in its short form: a name, perhaps
// with stars and ports. Addresses and bare suffixes are left to Load.
const hostPattern = `^(\*\*?\.)?[^*:/@\s_]+\.?(:` + portsPattern + `)?$`

const namePart = `^(\*\*?\.)?[^*:/@\s_]+$`

func (g *schemaMaker) ruleSchema(deny bool) object {
	name := "allow"
	if deny {
		name = "deny"
	}
	return g.define(name, func() object {
		long := g.form(reflect.TypeFor[ruleForm]())
		properties := long["properties"].(object)
		one := []object{{"required": []string{"host"}}, {"required": []string{"cidr"}, "properties": object{"private": false, "any_tenant": false}}}
		if deny {
			for _, key := range []string{"preset", "ech", "upload"} {
				delete(properties, key)
			}
		} else {
			properties["preset"].(object)["enum"] = presets.Names()
			one = append(one, object{"required": []string{"preset"}, "maxProperties": 1})
		}
		long["oneOf"] = one
		return object{"anyOf": []object{
			{"type": "string", "pattern": withVariable(hostPattern, true), "not": object{"pattern": `:53$`}},
			long,
		}}
	})
}

func (*ruleForm) refine(_, properties object, _ *schemaMaker) {
	properties["host"].(object)["pattern"] = withVariable(namePart, true)
	properties["cidr"].(object)["pattern"] = withVariable(`^[0-9a-fA-F.:]+/[0-9]+$`, true)
}

func (l *allowLine) schema(g *schemaMaker) object { return g.ruleSchema(false) }
func (l *denyLine) schema(g *schemaMaker) object  { return g.ruleSchema(true) }

func (p *portList) schema(g *schemaMaker) object {
	return g.define("ports-of-a-rule", func() object {
		one := object{"anyOf": []object{
			{"type": "integer", "minimum": 1, "maximum": 65535, "not": object{"const": 53}},
			{"type": "string", "pattern": `^` + portsPattern + `$`, "not": object{"const": "53"}},
		}}
		return object{"anyOf": []object{one, {"type": "array", "items": one, "minItems": 1}}}
	})
}

// reservedPattern are targets over our own paths.
const reservedPattern = `^/(opt|opt/workshop(/.*)?|(run|var/run|proc|sys|dev|etc/workshop)(/.*)?|var|etc(/passwd|/group|/hosts|/hostname|/resolv\.conf)?|tmp|scratch|home|home/worker)?/?`

func (m *Mount) schema(g *schemaMaker) object {
	return g.define("mount", func() object {
		return object{"anyOf": []object{
			{
				"type": "string", "pattern": `^((\.|\.\.|~)(/[^:\\]*)?|/[^:\\]*):/[^:]*(:(ro|rw))?$|` + variablePattern,
				"not": object{"anyOf": []object{{"pattern": hostpath.Pattern() + `:`}, {"pattern": `^[^:]*:` + reservedPattern[1:] + `(:(ro|rw))?$`}}},
			},
			g.form(reflect.TypeFor[mountForm]()),
		}}
	})
}

func (*mountForm) refine(form, properties object, g *schemaMaker) {
	if form["required"] = []string{"source", "target"}; g.worker { // of an imported file it may lack the source
		form["required"] = []string{"target"}
	}
	source, target := properties["source"].(object), properties["target"].(object)
	source["not"] = object{"pattern": hostpath.Pattern() + `$`}
	target["pattern"] = `^/[^:]*$|` + variablePattern
	target["not"] = object{"pattern": reservedPattern + `$`}
	delete(target, "allOf")
	properties["exclude"].(object)["items"] = object{"type": "string", "minLength": 1, "not": object{"pattern": `^(/|~|\.\.(/|$))`}}
	rw := object{"properties": object{"mode": object{"const": "rw"}}, "required": []string{"mode"}}
	form["allOf"] = []object{
		{"if": rw, "then": object{"properties": object{"exclude": false, "copy": object{"const": false}}}},
		{"if": object{"required": []string{"git"}}, "then": object{"properties": object{"mode": object{"not": object{"const": "ro"}}}, "required": []string{"mode"}}},
	}
}

func (s *Secret) schema(g *schemaMaker) object {
	return g.define("secret", func() object {
		long := g.form(reflect.TypeFor[secretForm]())
		if g.worker {
			properties := long["properties"].(object)
			delete(properties, "env")
			delete(properties, "file")
			return object{"anyOf": []object{{"type": "string", "pattern": secretNamePattern}, long}}
		}
		long["oneOf"] = []object{{"required": []string{"env"}}, {"required": []string{"file"}}}
		return long
	})
}

func (*secretForm) refine(_, properties object, _ *schemaMaker) {
	properties["file"].(object)["not"] = object{"pattern": hostpath.Pattern() + `$`}
}

func (b *Build) schema(g *schemaMaker) object {
	return g.define("build", func() object {
		return object{"anyOf": []object{{"type": "string", "minLength": 1}, g.form(reflect.TypeFor[buildForm]())}}
	})
}

func (w *workerEntry) schema(g *schemaMaker) object {
	g.worker = true
	defer func() { g.worker = false }()
	notReserved := object{"pattern": `^(guard|room|room-.*)$`}
	long := g.form(reflect.TypeFor[workerForm]())
	properties := long["properties"].(object)
	name := properties["name"].(object)
	name["not"] = notReserved
	properties["file"] = object{"type": "string", "pattern": `^[^/~][^\\\n]*$`, "not": object{"pattern": `(^|/)\.\.(/|$)|//`}, "description": properties["file"].(object)["description"]}
	inlineRules(long)
	g.defs["worker"] = object{"anyOf": []object{{"type": "string", "pattern": namePattern, "not": notReserved}, long}}
	return object{"$ref": "#/$defs/worker"}
}
