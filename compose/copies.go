package compose

import (
	"maps"
	"slices"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/compose-spec/compose-go/v2/types"
)

// Excluded reports whether patterns leave out a name, which is relative to the
// source, with slashes. A directory that is left out is so with all below it.
// The patterns are valid ones.
func Excluded(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, name) })
}

// copiesWithFacts adds what is to be copied to what the copies are made from.
func copiesWithFacts(copies map[string]Copy, f *Facts) map[string]Copy {
	out := maps.Clone(copies)
	for key, cp := range out {
		cp.Digest = f.CopyDigests[key]
		out[key] = cp
	}
	return out
}

// copyLabels returns what the copies of a worker were made from, so that plain
// Compose too recreates the worker when a file changed.
func (m *machine) copyLabels(s *types.ServiceConfig, a *addition) {
	for _, v := range s.Volumes {
		if digest := m.f.CopyDigests[v.Source]; v.Type == types.VolumeTypeVolume && digest != "" {
			a.labels[LabelCopy+v.Source] = digest
		}
	}
}
