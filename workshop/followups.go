package workshop

import (
	"slices"
	"strings"
)

// withoutFollowUps returns the entries without what would be compared with a
// refused part of the workshop's container: that would only repeat its error
// as a widening of every worker. Nothing is lost by it, because a workshop with
// an error is not returned.
func withoutFollowUps(entries []workerEntry, c *partialContainer, w *Workshop) []workerEntry {
	if c != nil && len(c.Refused) == 0 {
		return entries
	}
	entries = slices.Clone(entries)
	for i := range entries {
		e := entries[i].Container
		if e == nil {
			continue
		}
		if c == nil {
			entries[i].Container = nil
			continue
		}
		kept := *e
		for path := range c.Refused {
			key, _, _ := strings.Cut(path, ".")
			switch key {
			case "mounts":
				kept.Mounts = nil
			case "network":
				kept.Network, kept.Ports = nil, nil
			case "resources":
				kept.Resources = nil
			case "scratch":
				kept.Scratch = nil
			case "tmp":
				kept.Tmp = nil
			case "shm":
				kept.Shm = nil
			case "home":
				kept.Home = nil
			case "secrets":
				kept.Secrets = knownSecrets(e.Secrets, w.Container.Secrets)
			case "caches":
				kept.Caches = knownToWorkshop(e.Caches, w.Container.Caches)
			}
		}
		entries[i].Container = &kept
	}
	return entries
}

// knownSecrets keeps the names that the workshop has.
func knownSecrets(named *[]Secret, base []Secret) *[]Secret {
	if named == nil {
		return nil
	}
	out := slices.DeleteFunc(slices.Clone(*named), func(s Secret) bool {
		return !slices.ContainsFunc(base, func(b Secret) bool { return b.Name == s.Name })
	})
	return &out
}
