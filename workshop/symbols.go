package workshop

import (
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// symbols are the variables of a file that is read without their values, see
// Options.Symbols. A variable with a default has it as its value; one without has a
// stand-in that its key accepts. What of either depends on the machine is told by the
// template.
type symbols struct {
	chosen map[*node][]int // which stand-in each variable of a scalar has, in the order of the text
	ports  map[string]int  // a port for each name, so that two variables have two
	left   int             // scalars that may still be tried
}

// The work of finding stand-ins is bounded (B60): of one file, and of one value.
const (
	maxSymbolWork   = 200_000
	maxSymbolTrials = 300
)

// symbolHome stands for the home directory.
const symbolHome = "/home/symbol"

func newSymbols() *symbols {
	return &symbols{chosen: map[*node][]int{}, ports: map[string]int{}, left: maxSymbolWork}
}

// withoutMachine are the options of a load that reads nothing of the machine or its
// user.
func (o Options) withoutMachine() Options {
	if o.Symbols {
		o.Lookup, o.EnvFiles, o.Home, o.Homes = nil, nil, symbolHome, nil
	}
	return o
}

// symbol is one variable of a scalar.
type symbol struct {
	node  *node
	index int // among the variables of the node
	at    diag.Range
	own   bool // it has a default
	most  int  // number of stand-ins
}

// standIns are values for a variable, from the likeliest to the rarest; which one it
// has is what its key accepts. The default, if it has one, is the first.
func (s *symbols) standIns(name, op, arg string) []string {
	var out []string
	if op == ":-" {
		out = append(out, arg)
	}
	if s.ports[name] == 0 {
		s.ports[name] = 20000 + len(s.ports)%20000
	}
	word := "symbol-" + strings.ReplaceAll(strings.ToLower(name[:min(len(name), 40)]), "_", "-")
	word = strings.TrimRight(word, "-")
	return append(out, word, "./"+word, "/symbol/"+word, word+".example", strconv.Itoa(s.ports[name]),
		"rw", "ro", "missing", "true", "1G", "64", "1", "8192", "10m", "198.51.100.1", "198.51.100.0/24", strings.Repeat("0", 64),
		"http://"+word+".example:3128") // at last: its colons make several parts of one
}

// text is the value of a variable of the node, the one that begins at a byte of its
// text.
func (s *symbols) text(n *node, from int, name, op, arg string) (text string, origin Origin) {
	at := 0
	if chosen := s.chosen[n]; len(chosen) > 0 {
		index := 0
		eachVariable(n.text[:from], func(int, int) { index++ })
		at = chosen[min(index, len(chosen)-1)]
	}
	if op == ":-" && at == 0 {
		return arg, OfFile
	}
	list := s.standIns(name, op, arg)
	return list[min(at, len(list)-1)], OfUser
}

// eachVariable calls f with the place of each `${…}` and `$NAME` of a text.
func eachVariable(text string, f func(from, to int)) {
	for at := 0; at < len(text); {
		dollar := strings.IndexByte(text[at:], '$')
		if dollar < 0 {
			return
		}
		from := at + dollar
		at = variableEnd(text, from)
		if name, _, _ := parseVariable(text[from:at]); name != "" {
			f(from, at)
		}
	}
}

// variablesOf are the variables in the scalars of a node.
func (d *decoder) variablesOf(n *node) (out []symbol) {
	if n.kind == scalarNode && strings.Contains(n.text, "$") {
		eachVariable(n.text, func(from, to int) {
			name, op, arg := parseVariable(n.text[from:to])
			s := scalar{node: n, src: d.src, parts: []part{{from: from, to: to}}}
			out = append(out, symbol{node: n, index: len(out), at: s.rng(), own: op == ":-", most: len(d.symbols.standIns(name, op, arg))})
		})
	}
	for _, x := range n.items {
		out = append(out, d.variablesOf(x)...)
	}
	for _, p := range n.pairs {
		out = append(out, d.variablesOf(p.value)...)
	}
	return out
}

// settle chooses stand-ins for the variables of a value that is read as a whole, such
// as a mount: the first with which it is read without a problem. A problem with all of
// them is one that no value of the variables would mend, and is reported as ever.
func (d *decoder) settle(n *node, t reflect.Type, f *field) {
	switch t {
	case reflect.TypeFor[partialContainer](), reflect.TypeFor[partialNetwork](), reflect.TypeFor[workerEntry]():
		return // of many values
	}
	all := d.variablesOf(n)
	if len(all) == 0 || d.settling || d.symbols.chosen[all[0].node] != nil {
		return
	}
	for _, x := range all {
		d.symbols.chosen[x.node] = append(d.symbols.chosen[x.node], 0)
	}
	var best map[*node][]int // without an error, but with a warning
	for range maxSymbolTrials {
		if d.symbols.left -= len(all); d.symbols.left < 0 {
			break
		}
		problems := d.attempt(n, t, f)
		if len(problems) == 0 {
			return
		}
		failed := problems.HasErrors()
		if !failed && best == nil {
			best = d.symbols.choice(all)
		}
		if !d.symbols.advance(all, problems, failed) {
			break
		}
	}
	for _, x := range all {
		d.symbols.chosen[x.node][x.index] = 0
	}
	for x, chosen := range best {
		d.symbols.chosen[x] = chosen
	}
}

// attempt reads a value without a word, and returns its problems.
func (d *decoder) attempt(n *node, t reflect.Type, f *field) diag.List {
	trial := *d
	trial.problems, trial.trial, trial.settling = &problems{}, true, true
	trial.scope = &scope{keys: map[string]diag.Range{}, refused: map[string]bool{}}
	reflect.New(t).Interface().(decodable).decode(&trial, n, f)
	return trial.problems.list
}

// choice is a copy of what is chosen for the variables.
func (s *symbols) choice(of []symbol) map[*node][]int {
	out := map[*node][]int{}
	for _, x := range of {
		out[x.node] = slices.Clone(s.chosen[x.node])
	}
	return out
}

// advance goes on to the next stand-ins of the variables in the place of the first
// problem: false when there are none left, or when no value would help. A default is
// not given up for a warning.
func (s *symbols) advance(all []symbol, list diag.List, failed bool) bool {
	at := slices.IndexFunc(list, func(x diag.Diagnostic) bool { return x.Severity == diag.Error == failed })
	problem := list[at]
	if problem.Code == "variable-not-allowed" {
		return false
	}
	var suspects []symbol
	for _, x := range all {
		if overlaps(problem.Range, x.at) && (failed || !x.own || s.chosen[x.node][x.index] > 0) {
			suspects = append(suspects, x)
		}
	}
	if failed && len(suspects) == 0 {
		suspects = all // a rule about several keys
	}
	for _, x := range suspects {
		chosen := &s.chosen[x.node][x.index]
		if *chosen++; *chosen < x.most {
			return true
		}
		*chosen = 0
	}
	return false
}

func overlaps(a, b diag.Range) bool {
	return a.Filename == b.Filename && a.Start.Byte < b.End.Byte && b.Start.Byte < a.End.Byte
}

// standsIn reports whether a value may be another one on a machine.
func (d *decoder) standsIn(s diag.Source) bool { return d.symbols != nil && s.Template != "" }

// ProjectVariables are the values that the `.env` next to a workshop's file sets of the
// variables that the workshop uses and o has no value of. A file that can't be read sets
// none.
func ProjectVariables(fsys fs.FS, w *Workshop, o Options) map[string]string {
	out := map[string]string{}
	v := environment(fsys, path.Dir(w.File), o, &problems{})
	for _, x := range w.Variables {
		if s, ok := v.lookup(x.Name); ok && s.origin == OfFile {
			out[x.Name] = s.text
		}
	}
	return out
}

// VariablesIn are the names of the variables in a template, each as often as it is there.
func VariablesIn(template string) (names []string) {
	eachVariable(template, func(from, to int) {
		name, _, _ := parseVariable(template[from:to])
		names = append(names, name)
	})
	return names
}
