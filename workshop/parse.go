package workshop

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// parse reads YAML text into nodes. It returns nil when the text is not valid YAML, or
// beyond the limits; then there is an error in the problems.
func parse(src *source, p *problems) *node {
	if !checkText(src, p) {
		return nil
	}
	var doc yaml.Node
	if err := yamltext.Load(src.data[src.skip:], &doc, maxDepth); err != nil {
		p.add(syntaxError(src, err))
		return nil
	}
	if len(doc.Content) == 0 {
		p.add(emptyFile(src))
		return nil
	}
	b := &treeBuilder{src: src, diags: p, left: maxNodes, open: map[*yaml.Node]bool{}}
	root := b.build(doc.Content[0], 0)
	if b.over {
		return nil
	}
	if root != nil && root.isNull() {
		p.add(emptyFile(src))
		return nil
	}
	return root
}

// checkText refuses what isn't text before the YAML library sees it: it knows
// no position for these.
func checkText(src *source, p *problems) bool {
	if len(src.data) > MaxFileSize {
		p.add(diag.Diagnostic{
			Severity: diag.Error, Code: "too-large", Range: src.whole(),
			Summary: fmt.Sprintf("the file has %d bytes, more than %d", len(src.data), MaxFileSize),
			Detail:  "A workshop.yaml is read whole, so its size is limited.",
		})
		return false
	}
	if c, bad := yamltext.Check(src.data, src.skip); bad {
		p.add(diag.Diagnostic{
			Severity: diag.Error, Code: "not-text", Range: src.span(c.At, c.At+c.Len),
			Summary: c.Summary, Hint: c.Hint,
		})
		return false
	}
	return true
}

// hintExample is for a file that has nothing of a workshop: init overwrites none.
const hintExample = "copy the one that `workshop init example` writes into ./example"

func emptyFile(src *source) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Error, Code: "empty-file", Summary: "the file is empty", Range: src.whole(),
		Hint: hintExample,
	}
}

func tooLarge(_ *source, at diag.Range, deep bool) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "too-large", Range: at,
		Summary: fmt.Sprintf("the file has more than %d values after its aliases are expanded", maxNodes),
		Hint:    "write fewer aliases"}
	if deep {
		d.Summary = fmt.Sprintf("the file nests deeper than %d levels", maxDepth)
		d.Hint = "the keys of a workshop.yaml nest 7 levels deep"
	}
	return d
}

// ruleAfterKey is a line of allow on the line of its key.
var ruleAfterKey = lazily(`^[ \t]*(allow|deny): +(preset|host|cidr): +([^ \t"',{}\[\]]+)[ \t\r]*$`)

// mergeMark is the first line of a conflict (git-merge(1), "How conflicts are presented").
var mergeMark = lazily(`(?m)^<{7}( .*)?$`)

// syntaxError turns an error of the YAML library into a diagnostic.
func syntaxError(src *source, err error) diag.Diagnostic {
	d := diag.Diagnostic{Severity: diag.Error, Code: "not-yaml", Range: src.whole()}
	var load *yaml.LoadError
	msg := err.Error()
	if at := mergeMark().FindIndex(src.data); at != nil {
		d.Summary, d.Hint, d.Range = "the file has conflict markers of a merge", "write what both sides mean, and remove the marked lines", src.span(at[0], at[1])
		return d
	}
	switch {
	case strings.Contains(msg, "no documents in stream"):
		return emptyFile(src)
	case strings.Contains(msg, "expected single document"):
		d.Summary = "the file has several documents, separated by `---`"
		d.Hint = "write one workshop in one file"
		if at, ok := yamltext.SecondDocument(src.data, src.skip); ok {
			d.Range = src.span(at, at+3)
			if !bytes.HasPrefix(src.data[at:], []byte("---")) {
				d.Range = src.span(at, at)
				d.Summary = "text follows `...`, the end of the document"
			}
		}
		return d
	case !errors.As(err, &load):
		d.Summary = "not valid YAML: " + msg
		return d
	}
	place := func(m yamltext.Mark) diag.Range {
		at := src.offset(m.Line, m.Column)
		return src.span(at, at)
	}
	mark, context := markOf(load.Mark), markOf(load.ContextMark)
	if mark.Line > 0 {
		d.Range = place(mark)
	}
	at := d.Range.Start
	slip := yamltext.Explain(src.data[src.skip:], load.Message, mark, context)
	if at.Line > 0 {
		if m := ruleAfterKey().FindSubmatch(src.data[src.lines[at.Line-1]:src.lineEnd(at.Byte)]); m != nil {
			slip.Hint = fmt.Sprintf("write %s: [{%s: %s}]", m[1], m[2], m[3])
		}
	}
	switch {
	case errors.Is(err, yamltext.ErrTooDeep), strings.Contains(load.Message, yamltext.ErrTooDeep.Error()):
		return tooLarge(src, d.Range, true)
	case at.Line > 0 && at.Byte < len(src.data) && src.data[at.Byte] == '\t', strings.Contains(load.Message, "tab character"):
		d.Code = "tab"
		d.Summary = "a tab can't indent YAML"
		d.Hint = fmt.Sprintf("indent with spaces: `sed -i 's/\\t/%s/g' %s`", strings.Repeat(" ", tabStop(src.data, at.Line)), shellquote.Path(src.name))
	case slip.Summary != "" && mark.Line > 0:
		d.Summary, d.Hint, d.Range = slip.Summary, slip.Hint, place(slip.At)
		if slip.Related.Line > 0 {
			d.Related = []diag.Related{{Message: slip.RelatedText, Range: place(slip.Related)}}
		}
	default:
		d.Summary = "not valid YAML: " + load.Message
		if context.Line > 0 && context != mark && load.ContextMsg != "" {
			d.Related = []diag.Related{{Message: load.ContextMsg, Range: place(context)}}
		}
	}
	return d
}

func markOf(m yaml.Mark) yamltext.Mark { return yamltext.Mark{Line: m.Line, Column: m.Column} }

// tabStop returns how many spaces a tab that indents a line stands for, by the line
// before it; 2 where that doesn't say.
func tabStop(text []byte, line int) int {
	lines := bytes.SplitN(text, []byte("\n"), line+1)
	if line < 1 || line > len(lines) {
		return 2
	}
	own := lines[line-1]
	lead := own[:len(own)-len(bytes.TrimLeft(own, " \t"))]
	tabs := bytes.Count(lead, []byte("\t"))
	for n := line - 2; n >= 0; n-- {
		above := bytes.TrimSpace(lines[n])
		if len(above) == 0 || above[0] == '#' {
			continue
		}
		want := len(lines[n]) - len(bytes.TrimLeft(lines[n], " "))
		if bytes.HasSuffix(above, []byte(":")) {
			want += 2
		}
		if rest := want - (len(lead) - tabs); tabs > 0 && rest > 0 && rest%tabs == 0 {
			return rest / tabs
		}
		break
	}
	return 2
}
