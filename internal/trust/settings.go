package trust

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/module"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Said is what one file of settings says of sources.
type Said struct {
	File string // that says it; "" for none
	// Allow are patterns of sources, as GOPRIVATE has them of modules: HOST/PATH and
	// what is below, with * for a part; nil: it says nothing.
	Allow []string
	// Signers is a file of allowed signers, as ssh-keygen reads it; Boundary is a
	// workshop.yaml that no workshop grants more than. Both are absolute, or "".
	Signers, Boundary string
}

// Keys are those of settings that [ParseSaid] reads.
var Keys = []string{"boundary", "signers", "sources"}

// ParseSaid reads what a file of settings has by [Keys], among others.
func ParseSaid(file string, values map[string]any) (Said, error) {
	s := Said{File: file}
	var err error
	if s.Signers, err = fileSetting(file, values, "signers"); err != nil {
		return Said{}, err
	}
	if s.Boundary, err = fileSetting(file, values, "boundary"); err != nil {
		return Said{}, err
	}
	sources, given := values["sources"]
	if !given {
		return s, nil
	}
	list, ok := sources.(map[string]any)
	if !ok || len(list) != 1 || list["allow"] == nil {
		return Said{}, errors.New("setting sources: want `sources: {allow: [HOST/PATH]}`")
	}
	allow, ok := list["allow"].([]any)
	if !ok {
		return Said{}, errors.New("setting sources.allow: want a list such as [git.example.org/acme]")
	}
	s.Allow = []string{}
	for _, a := range allow {
		pattern, ok := a.(string)
		_, err := path.Match(pattern, "")
		if !ok || err != nil || pattern == "" || strings.ContainsAny(pattern, ", \t\n") || strings.Contains(pattern, "://") {
			return Said{}, fmt.Errorf("setting sources.allow: %q is not HOST/PATH, with * for a part", clip.Bytes(fmt.Sprint(a), 100))
		}
		s.Allow = append(s.Allow, strings.TrimSuffix(pattern, "/"))
	}
	return s, nil
}

// fileSetting is the absolute name of a file that a setting has, next to the settings if
// it is relative.
func fileSetting(file string, values map[string]any, key string) (string, error) {
	value, given := values[key]
	if !given {
		return "", nil
	}
	name, ok := value.(string)
	if !ok || name == "" || strings.HasPrefix(name, "~") || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("setting %s: want the name of a file, absolute or next to %s", key, filepath.Base(file))
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(file), name)
	}
	return name, nil
}

func (s Said) allows(id string) bool {
	return slices.ContainsFunc(s.Allow, func(p string) bool { return module.MatchPrefixPatterns(p, id) })
}

// Settings are what the machine says of sources and what the user does, who only narrows.
type Settings struct{ Machine, User Said }

// Permits fails for a source that the machine's settings don't allow, whatever the user
// accepts. id is the source as workshop.lock names it.
func (s Settings) Permits(id string) error {
	if s.Machine.Allow != nil && !s.Machine.allows(id) {
		return fmt.Errorf("%s is not one of the sources that %s allows (sources.allow)", id, s.Machine.File)
	}
	return nil
}

// Agreed reports whether nobody need be asked about a source: the user's settings allow
// it, or, where they say nothing, the machine's.
func (s Settings) Agreed(id string) bool {
	if s.Permits(id) != nil {
		return false
	}
	if s.User.Allow != nil {
		return s.User.allows(id)
	}
	return s.Machine.Allow != nil
}

// SignerFiles are the files of allowed signers: where there are any, a source must be
// signed by a key of each.
func (s Settings) SignerFiles() []string { return given(s.Machine.Signers, s.User.Signers) }

// Boundaries are the settings that name a workshop file which no workshop grants more than.
func (s Settings) Boundaries() []Said {
	return slices.DeleteFunc([]Said{s.Machine, s.User}, func(said Said) bool { return said.Boundary == "" })
}

func given(names ...string) []string {
	return slices.Compact(slices.DeleteFunc(names, func(n string) bool { return n == "" }))
}
