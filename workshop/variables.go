package workshop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/compose-spec/compose-go/v2/template"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// variables replaces ${NAME} in the scalars of the file and remembers which
// ones the file uses.
type variables struct {
	lookup settings
	used   map[string]Variable
	// asks are the variables of `.env` that it doesn't set by itself.
	asks map[string]foreignReference
}

// sorted returns the variables that the file uses.
func (v *variables) sorted() []Variable {
	out := make([]Variable, 0, len(v.used))
	for _, x := range v.used {
		out = append(out, x)
	}
	sortfunc.Stable(out, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (v *variables) use(name, def string, hasDefault bool) {
	old, seen := v.used[name]
	if !seen {
		v.used[name] = Variable{Name: name, Default: def, HasDefault: hasDefault}
		return
	}
	// Needed somewhere means needed.
	if !hasDefault {
		old.HasDefault, old.Default = false, ""
	}
	v.used[name] = old
}

// expand splits the text of a node into literal text and variables. What is a
// variable and its value is decided by compose-go's template package,
// so that a value means here what it means in the rendered project; it is
// asked piece by piece, because it matches a whole line at once.
func (d *decoder) expand(n *node) (scalar, bool) {
	s := scalar{node: n, src: d.src}
	text := n.text
	if !strings.Contains(text, "$") {
		s.parts = []part{{text: text, template: text, to: len(text)}}
		return s, true
	}
	total := 0
	literal := func(from, to int) {
		if from < to {
			s.parts = append(s.parts, part{text: text[from:to], template: text[from:to], from: from, to: to})
		}
	}
	for at := 0; at < len(text); {
		dollar := strings.IndexByte(text[at:], '$')
		if dollar < 0 {
			literal(at, len(text))
			break
		}
		from := at + dollar
		literal(at, from)
		to := variableEnd(text, from)
		p, good := d.variable(s, text, from, to)
		if !good {
			// The rest is not looked at: one place to mend is enough, and
			// text full of open braces must not cost more than its length.
			return s, false
		}
		s.parts = append(s.parts, p)
		if total += len(p.text); total > maxScalar {
			d.fail(n.rng, "too-large", fmt.Sprintf("the value has more than %d bytes once its variables are put in", maxScalar), "")
			return s, false
		}
		at = to
	}
	s.parts = joinLiterals(s.parts)
	if len(s.parts) == 0 {
		s.parts = []part{{to: len(text)}}
	}
	return s, true
}

// variableEnd returns the byte after what begins with the `$` at from.
func variableEnd(text string, from int) int {
	rest := text[from:]
	switch {
	case strings.HasPrefix(rest, "$$"):
		return from + 2
	case strings.HasPrefix(rest, "${"):
		if i := closingBrace(rest); i >= 0 {
			return from + i + 1
		}
		return from + 2
	}
	end := from + 1
	for end < len(text) && nameByte(text[end], end > from+1) {
		end++
	}
	return end
}

// nameByte reports whether a variable's name has the byte; digits can't begin it.
func nameByte(c byte, digits bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || digits && c >= '0' && c <= '9'
}

// joinLiterals makes `a$$b` one part, so that splitting sees whole literals.
func joinLiterals(parts []part) []part {
	var out []part
	for _, p := range parts {
		if i := len(out) - 1; i >= 0 && p.variable == "" && out[i].variable == "" {
			out[i].text += p.text
			out[i].template += p.template
			out[i].to = p.to
			continue
		}
		out = append(out, p)
	}
	return out
}

// closingBrace returns the index of the brace that closes the first one.
func closingBrace(s string) int {
	open := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// variable resolves one match of the pattern: `$$`, `$NAME` or `${…}`.
func (d *decoder) variable(s scalar, text string, from, to int) (part, bool) {
	expr := text[from:to]
	p := part{from: from, to: to}
	at := scalar{node: s.node, src: d.src, parts: []part{p}}.rng()
	if expr == "$$" {
		p.text, p.template = "$", "$$"
		return p, true
	}
	if expr == "${" && to < len(text) {
		name := to
		for name < len(text) && nameByte(text[name], name > to) {
			name++
		}
		hint := "close it with }, as in ${NAME}, or `$$` for a dollar sign"
		if name > to {
			hint = "write ${" + text[to:name] + "}, or `$$` for a dollar sign"
		}
		d.fail(at, "bad-variable", "the brace of `${` isn't closed", hint)
		return p, false
	}
	if expr == "$" || expr == "${" {
		d.fail(at, "bad-variable", "`$` begins a variable, but no name follows",
			"write `$$` for a dollar sign, or ${NAME}")
		return p, false
	}
	name, op, arg := parseVariable(expr)
	if d.foreign() {
		d.failDetail(at, "source-variable", fmt.Sprintf("a file for other repositories can't use the variable %s", clip(name)), "It would read what this machine has.", "write the value out, or `$$` for a dollar sign")
		return p, false
	}
	switch {
	case name == "" || !wholeMatch(expr):
		d.fail(at, "bad-variable", fmt.Sprintf("%q is not a variable", expr), "write ${NAME}, ${NAME:-default} or `$$` for a dollar sign")
		return p, false
	case op != "" && op != ":-" && op != ":?":
		d.failDetail(at, "bad-variable", fmt.Sprintf("${%s%s…} is not supported", name, op),
			"Generated files keep variables, and not every program that reads them knows this form.",
			fmt.Sprintf("write ${%s}, ${%s:-default} or ${%s:?message}", name, name, name))
		return p, false
	case strings.Contains(arg, "$"):
		d.failDetail(at, "bad-variable", fmt.Sprintf("the text in ${%s%s…} has a `$`", name, op),
			"Variables inside of variables can't be kept in generated files.", "write plain text there")
		return p, false
	}
	d.vars.use(name, arg, op == ":-")
	p.variable, p.template = name, "${"+name+":?}"
	if op == ":-" {
		p.template = "${" + name + ":-" + arg + "}"
	}
	if d.symbols != nil {
		p.text, p.origin = d.symbols.text(s.node, from, name, op, arg)
		return p, true
	}
	value, err := template.SubstituteWithOptions(expr, d.vars.lookup.text, template.WithoutLogging)
	set, isSet := d.vars.lookup(name)
	if set.text != "" {
		p.origin = set.origin
	}
	p.text = value
	var missing *template.MissingRequiredError
	foreign, asks := d.vars.asks[name]
	switch {
	case asks && isSet && set.origin == OfFile && full(d.problems):
		d.fail(at, codeEnvAsks, "", "") // only counted: to look for its line is work for nothing
		return p, false
	case asks && isSet && set.origin == OfFile:
		d.report(diag.Diagnostic{Severity: diag.Error, Code: codeEnvAsks, Range: referenceIn(foreign.src, foreign.variable),
			Summary: fmt.Sprintf("the .env file sets %s by the variable %s, which it doesn't set itself", name, foreign.variable),
			Detail:  "This file is part of the project and reads no environment (B45).",
			Hint:    fmt.Sprintf("write ${%s} in %s, or name the file with --env-file", foreign.variable, d.base()),
			Related: []diag.Related{{Message: "used here", Range: at}}})
		return p, false
	case errors.As(err, &missing):
		summary := fmt.Sprintf("the variable %s is not set", name)
		if missing.Reason != "" {
			summary += ": " + missing.Reason
		}
		d.fail(at, "unset-variable", summary, d.setHint(name))
		return p, false
	case err != nil:
		d.fail(at, "bad-variable", fmt.Sprintf("%q is not a variable", expr), "write ${NAME} or ${NAME:-default}")
		return p, false
	case op == "" && !isSet:
		d.fail(at, "unset-variable", fmt.Sprintf("the variable %s is not set", name), d.setHint(name))
		return p, false
	case op == "" && set.text == "":
		d.failDetail(at, "unset-variable", fmt.Sprintf("the variable %s is empty", name),
			"The generated project asks for a value where the file gives no default.",
			fmt.Sprintf("write ${%s:-} if it may be empty", name))
		return p, false
	case strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }):
		d.fail(at, "bad-variable", fmt.Sprintf("the value of %s has control characters", name), "")
		return p, false
	}
	return p, true
}

func (d *decoder) setHint(name string) string {
	return fmt.Sprintf("set it (%s=… in the environment or in the .env file next to %s), or write ${%s:-default}", name, d.base(), name)
}

// parseVariable splits $NAME, ${NAME}, ${NAME:-default} and the like.
func parseVariable(expr string) (name, op, arg string) {
	body := strings.TrimPrefix(expr, "$")
	if strings.HasPrefix(body, "{") {
		body = strings.TrimSuffix(body[1:], "}")
	}
	i := 0
	for i < len(body) && nameByte(body[i], i > 0) {
		i++
	}
	name, rest := body[:i], body[i:]
	for _, op := range []string{":-", ":?", ":+", "-", "?", "+"} {
		if strings.HasPrefix(rest, op) {
			return name, op, rest[len(op):]
		}
	}
	if rest != "" {
		return "", "", ""
	}
	return name, "", ""
}

// wholeMatch reports whether compose-go takes all of expr as one variable.
func wholeMatch(expr string) bool {
	at := template.DefaultPattern.FindStringIndex(expr)
	return at != nil && at[0] == 0 && at[1] == len(expr)
}
