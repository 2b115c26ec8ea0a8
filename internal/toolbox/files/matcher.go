package files

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/llmdo/workshop/tool"
)

const (
	// maxPattern bounds an expression, in bytes.
	maxPattern = 8 << 10
	// maxProgram bounds what an expression becomes, in instructions: a{0,1000} is
	// 2000 of them. Each may be tried on each byte, and nothing ends the search of
	// a block before its end.
	maxProgram = 5000
)

// matcher finds lines.
type matcher struct {
	re *regexp.Regexp
	// blocks: where no line of a block matches, the block doesn't either, so that
	// it can be asked about as a whole; not with \A and \z.
	blocks bool
	// ends: the expression has a $, which in a block isn't seen before \r.
	ends bool
}

// lookaround begins a group that RE2 doesn't have.
var lookaround = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\(\?<?[=!]`) })

func newMatcher(a tool.SearchFilesArgs) (*matcher, error) {
	switch {
	case a.Pattern == "":
		return nil, errors.New("pattern is empty")
	case len(a.Pattern) > maxPattern:
		return nil, fmt.Errorf("pattern has %d bytes, at most %d", len(a.Pattern), maxPattern)
	}
	p := a.Pattern
	if a.Literal {
		p = regexp.QuoteMeta(p)
	}
	flags := "(?m)"
	if a.IgnoreCase {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + p)
	if err != nil {
		var bad *syntax.Error
		if errors.As(err, &bad) {
			expr, why := strings.TrimPrefix(bad.Expr, flags), string(bad.Code)
			if lookaround().MatchString(expr) {
				why = "RE2 has no lookahead and no lookbehind"
			}
			return nil, fmt.Errorf("pattern is not a valid RE2 expression: %s: `%s`; to search for the text itself, set literal", why, expr)
		}
		return nil, err
	}
	m := &matcher{re: re, blocks: true}
	tree, err := syntax.Parse(flags+p, syntax.Perl)
	if err != nil {
		return nil, err
	}
	m.look(tree)
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > maxProgram && !a.Literal {
		return nil, fmt.Errorf("pattern is too large with its repetitions written out (%d steps, at most %d): repeat less, x{0,100}, or without a number, x*", n, maxProgram)
	}
	return m, nil
}

func (m *matcher) look(r *syntax.Regexp) {
	switch r.Op {
	case syntax.OpBeginText, syntax.OpEndText:
		m.blocks = false
	case syntax.OpEndLine:
		m.ends = true
	}
	for _, sub := range r.Sub {
		m.look(sub)
	}
}

// nothing reports whether certainly no line of a block matches.
func (m *matcher) nothing(block []byte) bool {
	if !m.blocks || m.ends && bytes.IndexByte(block, '\r') >= 0 {
		return false
	}
	return !m.re.Match(block)
}

// line returns where the expression matches in a line without its end.
func (m *matcher) line(b []byte) (from int, ok bool) {
	at := m.re.FindIndex(b)
	if at == nil {
		return 0, false
	}
	return at[0], true
}
