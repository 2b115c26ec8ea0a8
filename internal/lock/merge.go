package lock

import (
	"bytes"
	"cmp"
	"maps"

	"github.com/llmdo/workshop/internal/source"
)

// Agreed is what both sides of a lock with conflict markers of a merge have of sources and
// images: the same was reviewed on both, so that it need not be looked up again. All else
// is made anew and not in it, but for who signed a source: whatever is chosen must be signed
// by them. It is nil for a text without such markers, and where a side
// is not a lock.
func Agreed(data []byte) *Lock {
	ours, theirs, ok := sides(data)
	if !ok {
		return nil
	}
	one, _ := Parse("", ours)
	other, _ := Parse("", theirs)
	if one == nil || other == nil {
		return nil
	}
	out := Empty()
	for id, s := range one.Sources {
		o, has := other.Sources[id]
		switch {
		case has && (Source{Locked: s.Locked}).text() == (Source{Locked: o.Locked}).text():
			out.Sources[id] = s
		case has && (s.Signed != nil || o.Signed != nil):
			// Without a commit it fits no version.
			out.Sources[id] = Source{Locked: source.Locked{Signed: cmp.Or(s.Signed, o.Signed)}}
		}
	}
	for name, i := range one.Images {
		if o, has := other.Images[name]; has && i.Digest == o.Digest && maps.Equal(i.Platforms, o.Platforms) {
			out.Images[name] = i
		}
	}
	return out
}

// Ours is the lock of the branch that another is merged into, by a lock with conflict
// markers; nil where there is none.
func Ours(data []byte) *Lock {
	text, _, ok := sides(data)
	if !ok {
		return nil
	}
	l, _ := Parse("", text)
	return l
}

// sides are the texts of the two sides of a merge (git-merge(1), "How conflicts are
// presented"); not ok without a conflict, or where its markers aren't in their order.
func sides(data []byte) (ours, theirs []byte, ok bool) {
	const both, our, base, their = 0, 1, 2, 3
	next := map[string][]int{"<<<<<<<": {both, our}, "|||||||": {our, base}, ">>>>>>>": {their, both}}
	in := both
	for line := range bytes.Lines(data) {
		mark := string(line[:min(len(line), 7)])
		if step, is := next[mark]; is {
			if in != step[0] {
				return nil, nil, false
			}
			in, ok = step[1], true
			continue
		}
		if mark == "=======" {
			if in != our && in != base {
				return nil, nil, false
			}
			in = their
			continue
		}
		if in == both || in == our {
			ours = append(ours, line...)
		}
		if in == both || in == their {
			theirs = append(theirs, line...)
		}
	}
	return ours, theirs, ok && in == both
}
