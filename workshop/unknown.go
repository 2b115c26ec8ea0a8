package workshop

import (
	"cmp"
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
		ours, hint := d.renamedHint(p, f)
		x.hint = cmp.Or(hint, x.hint)
		d.failDetail(p.key.rng, "unsupported-key", fmt.Sprintf("the key %q is not supported%s", key, f.in()), x.why, x.hint)
		return ours
	}
	hint := "valid keys: " + f.list()
	if ours, value, ok := strings.Cut(p.key.text, ":"); ok && f.byKey[ours] != nil && p.value.isNull() { // KEY:VALUE in braces
		d.fail(p.key.rng, "unknown-key", fmt.Sprintf("unknown key %q%s", key, f.in()), fmt.Sprintf("write %s: %s, with a space after the colon", ours, clip(value)))
		return ours
	}
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
	near := nearest(text, valid)
	if same := sameValue[strings.ToLower(text)]; near == "" && slices.Contains(valid, same) {
		near = same
	}
	if near == "rw" && !strings.Contains(strings.ToLower(text), "w") {
		near = "" // ro is as near: what widens is never a guess
	}
	if near != "" {
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

// sameValue are values of other programs, and ours.
var sameValue = map[string]string{
	"allow": "auto", "always-allow": "auto", "prompt": "ask", "reject": "deny", "forbid": "deny", "block": "deny", // approvals
	"if_not_present": "missing", "if-not-present": "missing", "ifnotpresent": "missing", "true": "always", "daily": "always", "false": "never", // pull
	"gvisor": "sandboxed", "runsc": "sandboxed", "sandbox": "sandboxed", "microvm": "vm", "kata": "vm", "firecracker": "vm", "qemu": "vm", "kvm": "vm", "own": "sandboxed", "machine": "host", // kernel
	"readonly": "ro", "read-only": "ro", "write": "rw", "readwrite": "rw", "read-write": "rw", "w": "rw", // mounts
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}
