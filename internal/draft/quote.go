package draft

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/llmdo/workshop/internal/diagtext"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// plain is text that means itself in YAML, in lists in brackets too. Numbers and words
// such as yes, which a reader may take for another type, are not.
var plain = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\.|(\.{0,2}/|[A-Za-z~]|\.:/)[A-Za-z0-9_./@~+-]*(:[A-Za-z0-9_./@~+-]+)*( [A-Za-z0-9_./@~+]+)*)$`)
})

// words are plain text that YAML 1.1 or 1.2 reads as another type.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ".nan", ".inf"}

// Scalar writes a text as a scalar of YAML.
func Scalar(s string) string {
	ok := plain().MatchString(s)
	for _, w := range words {
		ok = ok && !strings.EqualFold(s, w)
	}
	if ok {
		return s
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")) // its escapes are YAML's, too
}

// List writes texts as a list in brackets.
func List(items []string) string {
	out := make([]string, len(items))
	for i, s := range items {
		out[i] = Scalar(s)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// maxComment is the length of a comment's text, in characters.
const maxComment = 120

// comment is text for a comment: on one line, without what a person can't see.
func comment(s string) string {
	return clip.Runes(diagtext.Printable(strings.Join(strings.Fields(s), " ")), maxComment)
}
