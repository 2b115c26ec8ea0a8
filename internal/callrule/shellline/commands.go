package shellline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Word is a word of a command as far as it is known without a shell.
type Word struct {
	Text string
	// Literal: Text is what the shell makes of it. Else it expands something.
	Literal bool
}

// maxDepth bounds how deep commands are nested in each other.
const maxDepth = 200

// Commands returns every simple command that a line names, as bash and as POSIX
// read it: in lists, pipes, conditions, functions and substitutions. `((x))` is
// arithmetic to the one and runs x to the other, and so with `[[ a || x ]]`. ok
// is false for a line that can't be read; a shell may read it anyway, in
// its own way.
func Commands(line string) (commands [][]Word, ok bool) {
	if len(line) > MaxLine || strings.ContainsRune(line, 0) || deep(line) {
		return nil, false
	}
	for _, lang := range []syntax.LangVariant{syntax.LangBash, syntax.LangPOSIX} {
		f, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
		if err != nil {
			continue
		}
		var found [][]Word
		syntax.Walk(f, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				if words := wordsOf(n.Args); len(words) > 0 {
					found = append(found, words)
				}
			case *syntax.DeclClause: // export, readonly, …: words of their own kind
				found = append(found, []Word{{Text: n.Variant.Value, Literal: true}, {}})
			}
			return true
		})
		if !ok || !slices.EqualFunc(commands, found, slices.Equal) {
			commands = append(commands, found...)
		}
		ok = true
	}
	return commands, ok
}

// deep reports whether a line opens more than the parser, which recurses, should
// follow.
func deep(line string) bool {
	return strings.Count(line, "(")+strings.Count(line, "{")+strings.Count(line, "`") > maxDepth
}

func wordsOf(list []*syntax.Word) (out []Word) {
	for _, w := range list {
		text, literal := textOf(w)
		if literal && text != "[" && text != "[[" && expands(w) {
			literal = false
		}
		out = append(out, Word{Text: text, Literal: literal})
	}
	return out
}

// expands reports whether a shell may make other words of unquoted text: names of
// files, alternatives in braces, a home directory.
func expands(w *syntax.Word) bool {
	for i, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok {
			continue
		}
		if i == 0 && strings.HasPrefix(lit.Value, "~") {
			return true
		}
		for j := 0; j < len(lit.Value); j++ {
			switch lit.Value[j] {
			case '\\':
				j++
			case '*', '?', '[', '{':
				return true
			}
		}
	}
	return false
}

// textOf returns the text of a word without its quotes, and whether that is all
// that there is to it.
func textOf(w *syntax.Word) (text string, literal bool) {
	var b strings.Builder
	literal = true
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				literal = false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			literal = literal && !p.Dollar
			for _, q := range p.Parts {
				lit, ok := q.(*syntax.Lit)
				if !ok {
					literal = false
					continue
				}
				b.WriteString(unescape(lit.Value, "$`\"\\"))
			}
		default:
			literal = false
		}
	}
	return b.String(), literal
}

// unescape removes backslashes before a character of only, or before any where
// only is empty.
func unescape(s, only string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (only == "" || strings.IndexByte(only, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
