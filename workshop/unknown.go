package workshop

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/llmdo/workshop/diag"
)

// unknownKey reports a key that the form doesn't have: what to write instead
// for keys of Compose, else the nearest key, and the valid ones. It returns the
// key that was probably meant, or "".
func (d *decoder) unknownKey(p pair, f *form) string {
	key := clip(p.key.text)
	if x, ok := hinted(f, p.key.text); ok {
		d.failDetail(p.key.rng, "unsupported-key", fmt.Sprintf("the key %q is not supported%s", key, f.in()), x.why, x.hint)
		return ""
	}
	hint := "valid keys: " + f.list()
	near := nearest(p.key.text, f.keyNames())
	if near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near) + hint
	}
	d.fail(p.key.rng, "unknown-key", fmt.Sprintf("unknown key %q%s", key, f.in()), hint)
	return near
}

// notOneOf reports a value outside of a fixed set.
func (d *decoder) notOneOf(at diag.Range, text string, valid []string, name string) {
	hint := "valid values: " + strings.Join(valid, ", ")
	if near := nearest(text, valid); near != "" {
		hint = fmt.Sprintf("did you mean %q? ", near) + hint
	}
	d.fail(at, "bad-value", fmt.Sprintf("%s %q is not a valid value", name, clip(text)), hint)
}

// nearest returns the candidate that text was probably meant to be, or "".
func nearest(text string, candidates []string) string {
	if len(text) > 64 {
		return ""
	}
	best, bestDistance := "", 1000
	low := strings.ToLower(text)
	for _, c := range candidates {
		n := levenshtein.Distance(low, c, nil)
		if n == 2 && sameLetters(low, c) { // two letters in the wrong order
			n = 1
		}
		if n < bestDistance {
			best, bestDistance = c, n
		}
	}
	if bestDistance == 0 && best != text || bestDistance <= max(1, min(len(text), len(best))/3) {
		return best
	}
	return ""
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
