package compose

import (
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
)

// cacheName reports whether the volume of a cache has a name of the project that
// tells what its worker is granted.
func (k *checker) cacheName(key, name string) bool {
	if _, ok := k.c.Caches[key]; !ok {
		return false
	}
	digest, ok := strings.CutPrefix(name, k.c.Project.Name+"_"+key+"-")
	return ok && len(digest) >= 12 && strings.Trim(digest, "0123456789abcdef") == ""
}

// cache checks a writable volume of a worker: it is a cache that the worker's own
// entry names, at its place, and no other service has it (B3).
func (k *checker) cache(s *types.ServiceConfig, v *types.ServiceVolumeConfig) {
	declared := false
	if w := k.c.definition(s.Name); w != nil {
		for i := range w.Container.Caches {
			x := &w.Container.Caches[i]
			declared = declared || x.Target.V == v.Target && v.Source == "cache-"+s.Name+"."+x.Name
		}
	}
	k.must(declared, "B3", "the volume %q at %s is not a cache that the worker names", v.Source, v.Target)
	k.must(k.mounted[v.Source] == 1, "B3", "the cache %q is mounted %d times", v.Source, k.mounted[v.Source])
}

// countMounts counts how often each volume is mounted.
func (k *checker) countMounts() {
	k.mounted = map[string]int{}
	for _, s := range k.c.Project.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume {
				k.mounted[v.Source]++
			}
		}
	}
}
