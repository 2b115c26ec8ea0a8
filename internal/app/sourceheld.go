package app

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// refusedRelease is a newer release of a source that the workshop can't be made of.
type refusedRelease struct {
	id        string
	ref, held string // the release, and the one that stays
	base      string // the workshop file, as diagnostics name it
	problems  diag.List
}

// withoutRefused reads a file again that has errors with the newest releases: with those
// that have none, and the locked ones of the other sources. Without an answer the errors
// aren't those of newer releases.
func (env *Env) withoutRefused(ctx context.Context, failed *Source) (*Source, []refusedRelease, error) {
	r := env.resolver
	newest := maps.Clone(r.chosen)
	var upgraded []string
	for _, name := range slices.Sorted(maps.Keys(newest)) {
		if was, known := failed.from.entry(newest[name].id); known && was.Commit != newest[name].Commit && r.upgrade(name) {
			upgraded = append(upgraded, name)
		}
	}
	if len(upgraded) == 0 || len(failed.from.failed) > 0 {
		return nil, nil, nil
	}
	taken := map[string]bool{}
	read := func(more string) (*Source, error) {
		r.wanted, r.chosen = map[string][]want{}, map[string]*openedSource{}
		for name, c := range newest {
			if r.held[name] = slices.Contains(upgraded, name) && !taken[name] && name != more; !r.held[name] {
				r.chosen[name] = c
			}
		}
		return env.readResolved(ctx, failed.Path, reading{symbols: true})
	}
	good, err := read("")
	if err != nil || good.Workshop == nil {
		return nil, nil, err
	}
	var refused []refusedRelease
	for _, name := range upgraded {
		with, err := read(name)
		switch {
		case err != nil:
			return nil, nil, err
		case with.Workshop != nil:
			taken[name] = true
		default:
			was, _ := failed.from.entry(newest[name].id)
			problems, _ := with.onlyErrors().Shown()
			refused = append(refused, refusedRelease{name, newest[name].Ref, was.Ref, with.ShownFile(with.Base()), problems})
		}
	}
	good, err = read("")
	return good, refused, err
}

// refusedReleases says why releases aren't taken.
func refusedReleases(all []refusedRelease) error {
	var lines, hints []string
	for _, x := range all {
		text, more := x.why()
		lines, hints = append(lines, text), append(hints, more...)
	}
	f := Fail(CodeRefused, "%s", strings.Join(lines, "\n"))
	for _, h := range slices.Compact(hints) {
		f.Hint("%s", h)
	}
	return f
}

// why is one line, and what to do.
func (x refusedRelease) why() (text string, hints []string) {
	release := tagOf(x.ref)
	end := "; " + tagOf(x.held) + " stays, nothing was written"
	var lacks []string
	for _, d := range x.problems {
		if d.Code != "import-needs" || d.Range.Filename != x.base {
			first := x.problems[0]
			if d.Hint != "" {
				hints = []string{d.Hint}
			}
			if n := len(x.problems) - 1; n > 0 {
				end = " (and " + Count(n, "other error") + ")" + end
			}
			return x.id + ": the release " + release + " can't be taken: " + first.Range.String() + ": " + first.Summary + end, hints
		}
		_, what, _ := strings.Cut(d.Summary, ": ")
		if !slices.Contains(lacks, what) {
			lacks = append(lacks, what)
		}
		hints = append(hints, d.Hint)
	}
	return x.id + ": the release " + release + " needs more than the file grants: " + strings.Join(lacks, ", ") + end, hints
}

func tagOf(ref string) string { return strings.TrimPrefix(ref, "refs/tags/") }
