package workshop

import (
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// mountsExcess compares two lists of mounts: every inner one needs an outer
// one whose source is the same or above it, and which is at least as open.
// Where it is mounted inside the container is free.
func mountsExcess(inner, outer []Mount, work *effort) []excess {
	if same(inner, outer) {
		return nil
	}
	var out []excess
	for i := range inner {
		m := &inner[i]
		_, why, ok := grantedBy(*m, outer, work)
		switch {
		case !ok:
			out = append(out, why)
		case work.exact:
			out = append(out, leastUncovered(m, inner, outer, work)...)
		}
	}
	return out
}

// leastUncovered is [uncovered] by the mount of outer that leaves the least of m, which
// is granted.
func leastUncovered(m *Mount, inner, outer []Mount, work *effort) (least []excess) {
	for i := range outer {
		if _, _, ok := grantedBy(*m, outer[i:i+1], work); !ok {
			continue
		}
		left := uncovered(m, inner, &outer[i], outer, outer, work)
		if len(left) == 0 {
			return nil
		}
		if least == nil || len(left) < len(least) {
			least = left
		}
	}
	return least
}

// grantedBy finds the outer mount that grants m. Where none does, the excess
// over the nearest one says why.
func grantedBy(m Mount, outer []Mount, work *effort) (Mount, excess, bool) {
	why := excess{key: "mounts", at: m.At.Range, haveOf: Part{Mount: &m},
		summary: fmt.Sprintf("the source %s is not among the sources of the workshop's mounts, nor below one", m.Source.V),
		hint:    fmt.Sprintf("add `- %s:%s` to the mounts of the workshop's container, or remove it here", m.Source.V, m.Target.V)}
	if len(outer) > 0 {
		why.grant = outer[0].At.Range
	}
	longest := -1
	for _, o := range outer {
		if !work.spend(1) {
			break
		}
		below, ok, known := sourceBelow(m.Source, o.Source, work.symbolic)
		if !known {
			why.unknown = true
		}
		if !ok {
			continue
		}
		work.spend(len(o.Exclude) * (100 + len(m.Exclude)))
		summary, hint := mountExcess(m, o, below, work.symbolic)
		if summary == "" {
			return o, excess{}, true
		}
		if work.symbolic && m.ModeTemplate+o.ModeTemplate != "" {
			why.unknown = true
		}
		if depth := strings.Count(path.Clean(o.Source.V), "/"); depth > longest {
			longest = depth
			why.summary, why.hint, why.grant, why.grantedOf.Mount = summary, hint, o.At.Range, &o
			why.unknown = why.unknown || work.exact && globUnknown(m, o, below)
		}
	}
	return Mount{}, why, false
}

// globUnknown reports whether a mount leaves out by other patterns what another one
// leaves out: whether these match all of it isn't decided.
func globUnknown(m, o Mount, below string) bool {
	if m.ReadWrite && !o.ReadWrite || m.GitWritable && !o.GitWritable || m.AllowSockets && !o.AllowSockets || m.OutsideProject && !o.OutsideProject || o.IsCopy() && !m.IsCopy() {
		return false // more is granted in another way
	}
	for _, pattern := range o.Exclude {
		if _, whole := residues(pattern, below); whole {
			return false
		}
	}
	return slices.ContainsFunc(m.Exclude, func(p string) bool { return below != "" || !slices.Contains(o.Exclude, p) })
}

// uncovered are the places below the source of m that other mounts of outer lie over,
// where o, which grants m, is mounted: workers see these through m unless a mount lies
// over them there too, or another one of granting, which are of
// outer, shows them.
func uncovered(m *Mount, inner []Mount, o *Mount, granting, outer []Mount, work *effort) (out []excess) {
	for i := range outer {
		n := &outer[i]
		if work.symbolic && n.Target.Source.Template != "" && n.Target.V != o.Target.V {
			if !slices.ContainsFunc(inner, func(k Mount) bool { return k.Target.Source.Template == n.Target.Source.Template }) {
				out = append(out, excess{key: "mounts", at: m.At.Range, grant: n.At.Range, unknown: true, haveOf: Part{Mount: m}, grantedOf: Part{Mount: n}, granted: "which may be over it"})
			}
			continue
		}
		rel, ok := subpath.Below(n.Target.V, o.Target.V)
		if !ok || rel == "" || !work.spend(1+len(inner)+len(outer)) {
			continue
		}
		hidden := *m
		hidden.Source.V = path.Join(o.Source.V, rel)
		unknown := work.symbolic && m.Source.Source.Template+o.Source.Source.Template+n.Target.Source.Template+o.Target.Source.Template != ""
		below, within := subpath.Below(hidden.Source.V, m.Source.V)
		switch {
		case within && below != "":
			if slices.ContainsFunc(inner, func(k Mount) bool {
				over, ok := subpath.Below(k.Target.V, m.Target.V)
				return ok && over != "" && subpath.Within(below, over)
			}) {
				continue
			}
		case !within && !subpath.Within(m.Source.V, hidden.Source.V):
			continue // elsewhere
		default:
			hidden.Source.V = m.Source.V
		}
		if within {
			hidden.Target.V = path.Join(m.Target.V, below)
		}
		others := slices.DeleteFunc(slices.Clone(granting), func(x Mount) bool { return x.Target.V == o.Target.V })
		if shows(others, &hidden, inner, outer, work) {
			continue
		}
		out = append(out, excess{key: "mounts", at: m.At.Range, grant: n.At.Range, unknown: unknown,
			haveOf: Part{Mount: m}, have: "with " + hidden.Source.V + " in it", grantedOf: Part{Mount: n}, granted: "over " + hidden.Source.V,
			summary: fmt.Sprintf("%s is covered by another mount there and not here", hidden.Source.V)})
	}
	return out
}

// shows reports whether one of the granting mounts shows all of m, over which others of
// outer may lie.
func shows(granting []Mount, m *Mount, inner, outer []Mount, work *effort) bool {
	for i := range granting {
		if _, _, ok := grantedBy(*m, granting[i:i+1], work); ok && len(uncovered(m, inner, &granting[i], granting, outer, work)) == 0 {
			return true
		}
	}
	return false
}

// sourceBelow reports whether a source is another one or below it. In a symbolic
// workshop a variable is equal to itself, and nothing else is known of it.
func sourceBelow(inner, outer Value[string], symbolic bool) (rest string, ok, known bool) {
	a, b := inner.Source.Template, outer.Source.Template
	if !symbolic || a+b == "" {
		rest, ok = subpath.Below(inner.V, outer.V)
		return rest, ok, true
	}
	if a == "" || b == "" {
		return "", false, false
	}
	a, b = opaque(a), opaque(b)
	if a != b && slices.Contains(strings.Split(a+"/"+b, "/"), "..") {
		return "", false, false // of a variable it may lead anywhere
	}
	if rest, ok = subpath.Below(a, b); strings.Contains(rest, variableMark) {
		return "", false, false
	}
	return rest, ok, ok
}

// variableMark stands at both ends of a variable in the result of opaque; no path has
// it (see deceives).
const variableMark = "\x01"

// opaque is a template in which each variable is a part of a path, whatever its
// default.
func opaque(template string) string {
	var b strings.Builder
	at := 0
	eachVariable(template, func(from, to int) {
		b.WriteString(template[at:from] + variableMark + hex.EncodeToString([]byte(template[from:to])) + variableMark)
		at = to
	})
	return b.String() + template[at:]
}

// mountExcess says what m has that o, whose source is `below` above it,
// doesn't grant; empty if nothing.
func mountExcess(m, o Mount, below string, symbolic bool) (summary, hint string) {
	if symbolic && m.ModeTemplate+o.ModeTemplate != "" { // either mode may be meant
		m.ReadWrite = m.ReadWrite || m.ModeTemplate != ""
		o.ReadWrite = o.ReadWrite && o.ModeTemplate == "" || m.ModeTemplate == o.ModeTemplate
	}
	switch {
	case m.ReadWrite && !o.ReadWrite:
		return fmt.Sprintf("%s is mounted read-only in the workshop and read-write here", m.Source.V), "write `:ro` here, or `:rw` in the workshop's container"
	case m.GitWritable && !o.GitWritable:
		return "`git: rw` isn't granted by the workshop's mount", "remove it here, or add it there"
	case m.AllowSockets && !o.AllowSockets:
		return "`sockets: allow` isn't granted by the workshop's mount", "remove it here, or add it there"
	case m.OutsideProject && !o.OutsideProject:
		return "`outside_project: true` isn't granted by the workshop's mount", "remove it here, or add it there"
	}
	if name := protectedIn(below); m.ReadWrite && name != "" && (name != ".git" || !o.GitWritable || strings.Contains(below, "hooks")) {
		return fmt.Sprintf("%s is read-only below the workshop's mount: what is planted there runs on the host", name), "write `:ro` here"
	}
	var missing []string
	for _, pattern := range o.Exclude {
		rest, whole := residues(pattern, below)
		if whole {
			return fmt.Sprintf("%s is excluded from the workshop's mount by %s", m.Source.V, pattern), "remove the mount here, or the pattern there"
		}
		for _, r := range rest {
			if !excludes(m.Exclude, r) && !slices.Contains(missing, r) {
				missing = append(missing, r)
			}
		}
	}
	if len(missing) > 0 {
		return "the workshop's mount excludes " + strings.Join(missing, ", ") + ", this one doesn't",
			"add `exclude: [" + quoted(missing) + "]`"
	}
	if o.IsCopy() && !m.IsCopy() {
		return fmt.Sprintf("the workshop mounts a copy of %s, this is the directory itself", m.Source.V), "add `copy: true`"
	}
	return "", ""
}

func quoted(patterns []string) string {
	out := make([]string, len(patterns))
	for i, p := range patterns {
		out[i] = fmt.Sprintf("%q", p)
	}
	return strings.Join(out, ", ")
}

// protectedIn returns the first directory of B8 on a path below a mount.
func protectedIn(below string) string {
	for part := range strings.SplitSeq(below, "/") {
		switch part {
		case ".git", ".claude", ".vscode", ".idea", ".husky", ".github":
			return part
		}
	}
	return ""
}

// residues returns what is left of a pattern, which is relative to a directory,
// for the directory `below` it: `data/*.key` for data is `*.key`. whole tells
// that the pattern takes the directory itself away.
func residues(pattern, below string) (rest []string, whole bool) {
	if below == "" {
		return []string{pattern}, false
	}
	seen := map[string]bool{}
	been := map[[2]int]bool{} // each ** branches: every state is visited once
	var walk func(pat, dir []string)
	walk = func(pat, dir []string) {
		if at := [2]int{len(pat), len(dir)}; been[at] {
			return
		} else {
			been[at] = true
		}
		switch {
		case len(pat) == 0: // a directory on the way, or the directory itself
			whole = true
		case len(dir) == 0:
			if r := strings.Join(pat, "/"); !seen[r] {
				seen[r] = true
				rest = append(rest, r)
			}
		case pat[0] == "**":
			walk(pat[1:], dir)
			walk(pat, dir[1:])
		default:
			if ok, err := doublestar.Match(pat[0], dir[0]); ok || err != nil {
				walk(pat[1:], dir[1:])
			}
		}
	}
	pat := slices.CompactFunc(strings.Split(path.Clean(pattern), "/"), func(a, b string) bool { return a == "**" && b == "**" })
	walk(pat, strings.Split(below, "/"))
	return rest, whole
}

// excludes reports whether a list of patterns takes away what the pattern does.
func excludes(list []string, pattern string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		p = path.Clean(p)
		return p == path.Clean(pattern) || p == "**" || p == "**/"+path.Base(pattern)
	})
}

// within notes in every inner mount which outer source grants it, and what grants
// that one.
func within(inner, outer []Mount, work *effort) []Mount {
	out := slices.Clone(inner)
	for i := range out {
		o, _, ok := grantedBy(out[i], outer, work)
		if !ok {
			continue
		}
		all := slices.Clone(out[i].Within)
		for _, source := range append(slices.Clone(o.Within), o.Source.V) {
			if !slices.Contains(all, source) {
				all = append(all, source)
			}
		}
		out[i].Within = all
	}
	return out
}

// barer are the places that mounts of outer lie over and that inner shows, see
// [uncovered].
func barer(inner, outer []Mount, work *effort) (out []excess) {
	if same(inner, outer) {
		return nil
	}
	for i := range inner {
		for _, x := range leastUncovered(&inner[i], inner, outer, work) {
			x.hint = fmt.Sprintf("mount it here too: `- %s:%s`", x.grantedOf.Mount.Source.V, x.grantedOf.Mount.Target.V)
			out = append(out, x)
		}
	}
	return out
}
