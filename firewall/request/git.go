package request

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Git is `git` of a line: the repositories of a host that are read by git, and those refs of
// them that are pushed to or deleted. Its zero value is none.
type Git struct {
	Read []Repository `json:"read,omitempty"`
	// Push has the refs that are made or moved, also to commits that have less than before:
	// which ones these are, no one can see without the objects. Delete has those that are
	// removed. A repository of either is read, too.
	Push   Refs `json:"push,omitempty"`
	Delete Refs `json:"delete,omitempty"`
	// AnyRepository confirms that a pattern names repositories of every owner although the
	// line has a credential.
	AnyRepository bool `json:"any_repository,omitempty"`
}

// Refs are refs by repositories, in the order of the repositories' texts.
type Refs []RefsOf

// RefsOf are refs of repositories.
type RefsOf struct {
	Repository Repository `json:"repository"`
	Refs       []Ref      `json:"refs"`
}

// IsZero reports whether there are no rules.
func (g Git) IsZero() bool {
	return len(g.Read) == 0 && len(g.Push) == 0 && len(g.Delete) == 0 && !g.AnyRepository
}

// Reads reports whether a repository, "acme/app", is read.
func (g Git) Reads(repository string) bool {
	return slices.ContainsFunc(g.Read, func(r Repository) bool { return r.Match(repository) }) || g.Writes(repository)
}

// Writes reports whether a repository has refs that are pushed to or deleted.
func (g Git) Writes(repository string) bool {
	return g.Pushes(repository) || len(g.Delete.Of(repository)) > 0
}

// Pushes reports whether a repository has refs that are pushed to.
func (g Git) Pushes(repository string) bool { return len(g.Push.Of(repository)) > 0 }

// Of returns the refs of a repository.
func (x Refs) Of(repository string) (out []Ref) {
	for _, r := range x {
		if r.Repository.Match(repository) {
			out = append(out, r.Refs...)
		}
	}
	return out
}

// Has reports whether a ref, by its whole name, is one of a repository's.
func (x Refs) Has(repository, ref string) bool {
	return slices.ContainsFunc(x.Of(repository), func(r Ref) bool { return r.Match(ref) })
}

// Check returns an error if there is nothing, too much, or a confirmation of what isn't
// there.
func (g Git) Check() error {
	n := len(g.Read)
	for _, x := range slices.Concat(g.Push, g.Delete) {
		n += len(x.Refs)
		if len(x.Refs) == 0 {
			return fmt.Errorf("git: %s has no refs", x.Repository)
		}
	}
	switch {
	case n == 0:
		return errors.New("git names no repository")
	case n > MaxRules:
		return fmt.Errorf("git has more than %d repositories and refs", MaxRules)
	case g.AnyRepository && !g.Any():
		return errors.New("any_repository is for repositories of every owner, and git names the owners")
	}
	return nil
}

// Any reports whether a pattern names repositories of every owner.
func (g Git) Any() bool { return slices.ContainsFunc(g.repositories(), Repository.any) }

// repositories are the patterns.
func (g Git) repositories() []Repository {
	out := slices.Clone(g.Read)
	for _, x := range slices.Concat(g.Push, g.Delete) {
		out = append(out, x.Repository)
	}
	return out
}

// Owners are the first segments of the repositories' paths, sorted; not ok: any.
func (g Git) Owners() (owners []string, ok bool) {
	if g.Any() {
		return nil, false
	}
	for _, r := range g.repositories() {
		owners = append(owners, r.path.segments[0])
	}
	slices.Sort(owners)
	return slices.Compact(owners), true
}

// Within reports whether all that g has is had by o: a pattern of repositories is inside of
// one of o, and a pattern of refs inside of one that o has for such a pattern.
func (g Git) Within(o Git) bool {
	outer := o.repositories()
	return !slices.ContainsFunc(g.repositories(), func(r Repository) bool {
		return !slices.ContainsFunc(outer, func(x Repository) bool { return r.path.within(x.path) })
	}) && g.Push.within(o.Push) && g.Delete.within(o.Delete)
}

func (x Refs) within(o Refs) bool {
	for _, r := range x {
		for _, ref := range r.Refs {
			if !slices.ContainsFunc(o, func(y RefsOf) bool {
				return r.Repository.path.within(y.Repository.path) && slices.ContainsFunc(y.Refs, func(z Ref) bool { return ref.name.within(z.name) })
			}) {
				return false
			}
		}
	}
	return true
}

// Texts are the rules in words, one a line: "read acme/app", "push acme/app: agent/*".
func (g Git) Texts() []string {
	var out []string
	for _, text := range g.ReadTexts() {
		out = append(out, "read "+text)
	}
	for _, x := range []struct {
		word string
		refs Refs
	}{{"push", g.Push}, {"delete", g.Delete}} {
		for _, r := range x.refs {
			out = append(out, x.word+" "+r.Repository.text+": "+strings.Join(r.Texts(), ", "))
		}
	}
	return out
}

// ReadTexts are the patterns of [Git.Read] as they were written.
func (g Git) ReadTexts() []string {
	out := make([]string, len(g.Read))
	for i, r := range g.Read {
		out[i] = r.text
	}
	return out
}

// Texts are the refs as they were written.
func (r RefsOf) Texts() []string {
	out := make([]string, len(r.Refs))
	for i, ref := range r.Refs {
		out[i] = ref.text
	}
	return out
}

// Map is the form that a file has: a mapping of repositories to lists.
func (x Refs) Map() map[string][]string {
	if x == nil {
		return nil
	}
	out := make(map[string][]string, len(x))
	for _, r := range x {
		out[r.Repository.text] = r.Texts()
	}
	return out
}

// Sort brings them into their order.
func (x Refs) Sort() {
	sortfunc.Stable(x, func(a, b RefsOf) int { return strings.Compare(a.Repository.text, b.Repository.text) })
}
