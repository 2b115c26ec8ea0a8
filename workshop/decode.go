package workshop

import (
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/hostpath"
)

// decoder turns nodes into the types of this package. It goes on after an
// error, so that all problems of a file are found at once.
type decoder struct {
	src  *source
	vars *variables
	*problems
	home    string // of the caller, clean; may be empty
	root    string // absolute path of fsys; may be empty
	refused hostpath.List
	fsys    fs.FS
	dir     string                    // directory of the file in fsys: the project
	presets map[string]presets.Preset // that were read already
	// followed are paths whose symbolic links were followed already.
	followed map[string]ending
	// scope records what is found below the `container:` that is being read.
	scope *scope
	// trial is set while a line of a hint is read: its errors get no hints.
	trial bool
	// symbols is set where variables have no values; settling, while stand-ins for
	// them are chosen.
	symbols  *symbols
	settling bool
	// worker is set below a worker's `container:`.
	worker bool
	// as is what the file is in the workshop; unsourced: its mounts may leave out where
	// they come from, since who imports the file says that.
	as        sharer
	unsourced bool
	// secrets are the workshop's, once its container is read.
	secrets []Secret
}

// scope is the bookkeeping of one container, see partialContainer.
type scope struct {
	path    []string
	keys    map[string]diag.Range
	refused map[string]bool
}

// decodable is a type that reads itself from a node: all short forms do. It
// returns false after it reported an error.
type decodable interface {
	decode(d *decoder, n *node, f *field) bool
}

// completer is a type with rules about several of its keys.
type completer interface {
	// complete is called after all keys are read without an error.
	complete(d *decoder, n *node) bool
}

func (d *decoder) base() string { return path.Base(d.src.name) }

// fail reports an error and marks the key that is being read.
func (d *decoder) fail(at diag.Range, code, summary, hint string) {
	d.failDetail(at, code, summary, "", hint)
}

func (d *decoder) failDetail(at diag.Range, code, summary, detail, hint string) {
	d.report(diag.Diagnostic{Severity: diag.Error, Code: code, Summary: summary, Detail: detail, Hint: hint, Range: at})
}

func (d *decoder) report(x diag.Diagnostic) {
	if x.Severity == diag.Error && d.scope != nil {
		d.scope.refused[strings.Join(d.scope.path, ".")] = true
	}
	d.add(x)
}

// value decodes a node into v, which is settable.
func (d *decoder) value(n *node, v reflect.Value, f *field) bool {
	if v.Kind() == reflect.Pointer {
		x := reflect.New(v.Type().Elem())
		ok := d.value(n, x.Elem(), f)
		// A list keeps its good items, so that rules about them still run.
		_, parts := x.Interface().(partsKeeper)
		if ok || parts && n.kind == mapNode || x.Elem().Kind() == reflect.Slice && n.kind == listNode {
			v.Set(x)
		}
		return ok
	}
	if x, ok := v.Addr().Interface().(decodable); ok {
		if d.symbols != nil {
			d.settle(n, v.Type(), f)
		}
		return x.decode(d, n, f)
	}
	switch v.Kind() {
	case reflect.Slice:
		return d.list(n, v, f)
	case reflect.Map:
		return d.table(n, v, f)
	case reflect.Struct:
		if n.kind != mapNode {
			d.wrongType(n, f, "a mapping")
			return false
		}
		return d.mapping(n, v)
	}
	panic(fmt.Sprintf("workshop: no way to decode %s", v.Type()))
}

// list decodes a list; items with errors are left out.
func (d *decoder) list(n *node, v reflect.Value, f *field) bool {
	if n.kind != listNode {
		d.wrongType(n, f, "a list")
		return false
	}
	if len(n.items) > maxItems {
		d.fail(n.rng, "too-large", fmt.Sprintf("%s has %d items, more than %d", f.name(), len(n.items), maxItems), "")
		return false
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.items))
	good := true
	for _, item := range n.items {
		x := reflect.New(v.Type().Elem()).Elem()
		if !d.value(item, x, f.item()) {
			good = false
			continue
		}
		out = reflect.Append(out, x)
	}
	v.Set(out)
	return good
}

// table decodes a mapping whose keys are the user's own names.
func (d *decoder) table(n *node, v reflect.Value, f *field) bool {
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping of NAME: value")
		return false
	}
	if len(n.pairs) > maxItems {
		d.fail(n.rng, "too-large", fmt.Sprintf("%s has %d keys, more than %d", f.name(), len(n.pairs), maxItems), "")
		return false
	}
	out := reflect.MakeMapWithSize(v.Type(), len(n.pairs))
	good := true
	for _, p := range d.keys(n) {
		if f != nil && f.names != "" && !d.checkRule(p.key.rng, p.key.text, f.names, "the name") {
			good = false
			continue
		}
		x := reflect.New(v.Type().Elem()).Elem()
		if !d.value(p.value, x, d.tableField(p, f)) {
			good = false
			continue
		}
		out.SetMapIndex(reflect.ValueOf(p.key.text), x)
	}
	v.Set(out)
	return good
}

// tableField is the field for a value of a table; that of a variable has the line that
// was meant as its example.
func (d *decoder) tableField(p pair, f *field) *field {
	x := f.key(p.key.text)
	if x == nil || x.names != "envname" || !x.number || p.value.kind == scalarNode && !p.value.isNull() {
		return x
	}
	name := clip(p.key.text)
	x.example = "write " + name + `: ""`
	if text, ok := d.src.flow(p.value); ok && !p.value.isNull() {
		x.example = "write " + name + ": " + strconv.Quote(text)
	} else if x.literal == "" {
		x.example += ", or " + name + `: "${` + name + `:-}" for the variable of the host`
	}
	return x
}

// mapping decodes a mapping with the keys of a struct type.
func (d *decoder) mapping(n *node, v reflect.Value) bool {
	if n.kind != mapNode {
		panic("workshop: mapping of another node")
	}
	form := formOf(v.Type())
	if i := form.source; i >= 0 {
		v.Field(i).Set(reflect.ValueOf(diag.Source{Range: n.rng}))
	}
	before := d.errors
	n = d.indented(n, form)
	meant := map[string]bool{} // keys that were misspelt: they aren't missing too
	for _, p := range d.keys(n) {
		f, known := form.byKey[p.key.text]
		if !known {
			near := d.unknownKey(p, form)
			meant[near] = true
			if near != "" && d.scope != nil && len(d.scope.path) == 0 {
				d.scope.keys[near] = p.key.rng
			}
			continue
		}
		d.enter(p.key)
		d.value(p.value, v.Field(f.index), f)
		d.leave()
	}
	for _, f := range form.fields {
		if f.required && !hasKey(n, f.keyName) && !meant[f.keyName] && !slices.ContainsFunc(f.unless, func(key string) bool { return hasKey(n, key) }) && !d.needless(f) {
			d.fail(startOf(n.rng), "missing-key", fmt.Sprintf("the key %q is missing%s", f.keyName, form.in()), f.example)
		}
	}
	if d.errors > before {
		return false
	}
	if c, ok := v.Addr().Interface().(completer); ok {
		return c.complete(d, n)
	}
	return true
}

// needless reports whether a required key may be missing: an imported file has no
// container.
func (d *decoder) needless(f *field) bool {
	return d.as == importedFile && slices.Contains(f.unless, "needs")
}

// keys returns the pairs of a mapping without those that are given twice, and
// reports these and keys that are not text.
func (d *decoder) keys(n *node) []pair {
	seen := make(map[string]diag.Range, len(n.pairs))
	out := make([]pair, 0, len(n.pairs))
	for _, p := range n.pairs {
		switch {
		case p.key.kind != scalarNode:
			d.fail(p.key.rng, "wrong-type", "a key must be text, not "+p.key.describe(), "text that begins with { or [ needs quotes")
			continue
		case p.key.tag == "!!merge":
			d.failDetail(p.key.rng, "merge-key", "merge keys (<<) are not supported",
				"Each key has one place in the file, so that errors and generated files can name it.", "write the keys out")
			continue
		case strings.Contains(p.key.text, "$") && strings.Contains(p.key.text, "{"):
			d.fail(p.key.rng, "variable-not-allowed", "a key can't be a variable", "write the key out")
			continue
		}
		if first, again := seen[p.key.text]; again {
			d.report(diag.Diagnostic{
				Severity: diag.Error, Code: "duplicate-key",
				Summary: fmt.Sprintf("the key %q is given twice in one mapping", clip(p.key.text)),
				Hint:    "remove one of them", Range: p.key.rng,
				Related: []diag.Related{{Message: "first here", Range: first}},
			})
			continue
		}
		seen[p.key.text] = p.key.rng
		out = append(out, p)
	}
	return out
}

// enter and leave keep the path below the container.
func (d *decoder) enter(key *node) {
	if d.scope != nil {
		d.scope.path = append(d.scope.path, key.text)
		d.scope.keys[strings.Join(d.scope.path, ".")] = key.rng
	}
}

func (d *decoder) leave() {
	if d.scope != nil {
		d.scope.path = d.scope.path[:len(d.scope.path)-1]
	}
}

// wrongType reports a node of another kind than expected.
func (d *decoder) wrongType(n *node, f *field, want string) {
	summary := fmt.Sprintf("%s must be %s, found %s", f.name(), want, n.describe())
	hint := ""
	if f = d.meant(n, f); f != nil {
		hint = f.example
	}
	if n.isNull() {
		summary = fmt.Sprintf("%s has no value; it must be %s", f.name(), want)
		if hint == "" {
			hint = "write a value or remove the key"
		}
	}
	d.fail(n.rng, "wrong-type", summary, hint)
}

func hasKey(n *node, key string) bool {
	for _, p := range n.pairs {
		if p.key.kind == scalarNode && p.key.text == key {
			return true
		}
	}
	return false
}

func startOf(r diag.Range) diag.Range {
	r.End = r.Start
	return r
}

// clip shortens text of the file in a message.
func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:77], "") + "..."
}
