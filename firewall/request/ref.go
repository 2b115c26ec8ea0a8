package request

import (
	"fmt"
	"slices"
	"strings"
)

// heads is where branches are.
const heads = "refs/heads/"

// CheckRef refuses what is not the whole name of a ref (git-check-ref-format(1)), and what
// files on some server may take for another.
func CheckRef(name string) error {
	bad := !strings.HasPrefix(name, "refs/") || len(name) > 255 || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.HasSuffix(name, ".") || strings.ContainsAny(name, " ~^:?*[\\") ||
		strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == 0xfffd })
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(strings.ToLower(part), ".lock") || part == "@"
	}
	if bad || strings.Count(name, "/") < 2 {
		return fmt.Errorf("%s is not the name of a ref", shown(name))
	}
	return nil
}

// Ref is an item of the refs of a repository: "agent/*" for branches, or a whole name such
// as "refs/tags/*". The zero Ref matches nothing.
type Ref struct {
	text string
	name pattern
}

// ParseRef reads an item: the name of a branch, or of another ref as a whole; a segment "*"
// is any, "/**" at the end all below. An error says what to write.
func ParseRef(text string) (Ref, error) {
	if rest, ok := strings.CutPrefix(text, heads); ok {
		return Ref{}, fmt.Errorf("%s: write %s, branches are meant", shown(text), clipped(rest))
	}
	whole := text
	if !strings.HasPrefix(text, "refs/") {
		whole = heads + text
	}
	p, err := starred(strings.Split(whole, "/"), text)
	if err != nil {
		return Ref{}, err
	}
	if len(p.segments) < 2 || p.segments[1] == "*" {
		return Ref{}, fmt.Errorf("%s: write which refs, such as refs/tags/*", shown(text))
	}
	example := strings.ReplaceAll(strings.Join(p.segments, "/"), "*", "x")
	if p.below {
		example += "/x"
	}
	if err := CheckRef(example); err != nil {
		return Ref{}, fmt.Errorf("%s can't be a branch or a ref", shown(text))
	}
	return Ref{text, p}, nil
}

// starred reads segments with wildcards, of text: "*" for one, and "**" at the end for all
// that is below.
func starred(segments []string, text string) (p pattern, err error) {
	if n := len(segments) - 1; segments[n] == "**" {
		segments, p.below = segments[:n], true
	}
	for _, s := range segments {
		if strings.Contains(s, "*") && s != "*" {
			return p, fmt.Errorf("%s: a * stands for a whole segment, and ** at the end for all below", shown(text))
		}
	}
	p.segments = segments
	return p, nil
}

// String is the item as it was written.
func (r Ref) String() string { return r.text }

// Match reports whether a ref, by its whole name, is one of the item.
func (r Ref) Match(name string) bool {
	return r.text != "" && CheckRef(name) == nil && r.name.match(strings.Split(name, "/"))
}

// MarshalText implements encoding.TextMarshaler.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler: see [ParseRef].
func (r *Ref) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRef(string(b))
	return err
}

// Repository is a pattern of repositories of a host: "acme/app", "acme/*", "group/**", or
// "**" for every one. The zero Repository matches nothing.
type Repository struct {
	text string
	path pattern
}

// ParseRepository reads a pattern of repositories. An error says what to write.
func ParseRepository(text string) (Repository, error) {
	p, err := starred(strings.Split(strings.TrimPrefix(text, "/"), "/"), text)
	switch {
	case err != nil:
		return Repository{}, err
	case strings.HasPrefix(text, "/"), strings.Contains(text, "://"):
		return Repository{}, fmt.Errorf("%s: write OWNER/REPOSITORY, without the host", shown(text))
	case text == "*":
		return Repository{}, fmt.Errorf(`"*" is the first part of a path alone: write OWNER/*, or "**" for every repository`)
	case strings.HasSuffix(strings.ToLower(text), ".git"):
		return Repository{}, fmt.Errorf("%s: write it without .git, both are meant", shown(text))
	}
	example := slices.Clone(p.segments)
	for i, x := range example {
		if x == "*" {
			example[i] = "x"
		}
	}
	if checkRepository(example) != nil {
		return Repository{}, fmt.Errorf("%s can't be a repository: write OWNER/REPOSITORY", shown(text))
	}
	if len(p.segments) > maxSegments {
		return Repository{}, fmt.Errorf("%s has more than %d segments", shown(text), maxSegments)
	}
	return Repository{text, p}, nil
}

// checkRepository returns an error if segments can't be the path of a repository: none of them
// is a part of git's own addresses, at which a server could end the path.
func checkRepository(segments []string) error {
	for i, s := range segments {
		own := s == UploadPack || s == ReceivePack || s == "gitlab-lfs" || s == "info" && i+1 < len(segments) && (segments[i+1] == "refs" || segments[i+1] == "lfs")
		if own || s == "" || s == "." || s == ".." || strings.HasSuffix(strings.ToLower(s), ".git") ||
			strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 || !alphanumeric(byte(r)) && !strings.ContainsRune("-._~+@,=", r) }) {
			return fmt.Errorf("%s can't be the path of a repository", shown(strings.Join(segments, "/")))
		}
	}
	return nil
}

// String is the pattern as it was written.
func (r Repository) String() string { return r.text }

// Match reports whether a repository, "acme/app", is one of the pattern.
func (r Repository) Match(name string) bool {
	return r.text != "" && r.path.match(strings.Split(name, "/"))
}

// any reports whether the owner may be any.
func (r Repository) any() bool { return anyFirst(r.path) }

// MarshalText implements encoding.TextMarshaler.
func (r Repository) MarshalText() ([]byte, error) { return []byte(r.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler: see [ParseRepository].
func (r *Repository) UnmarshalText(b []byte) (err error) {
	*r, err = ParseRepository(string(b))
	return err
}

// IsObjectName reports whether id is the name of an object of git: 40 hexadecimal digits, or 64
// in a repository of SHA-256 (gitprotocol-common(5)).
func IsObjectName(id string) bool {
	return (len(id) == 40 || len(id) == 64) && strings.Trim(id, "0123456789abcdef") == ""
}
