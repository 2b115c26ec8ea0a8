// Package reference parses the values of `image:`: an image of a registry, one in a
// directory or file of the machine, or the host's own programs. It is the only package
// that distinguishes them; it uses the text alone.
package reference

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/distribution/reference"
)

// Kind is where an image comes from.
type Kind int

// The kinds of images.
const (
	Registry Kind = iota + 1 // NAME[:TAG][@DIGEST]
	Host                     // host: the machine's own programs, no image
	Layout                   // oci:DIR[:TAG|@DIGEST], an OCI image layout
	Archive                  // docker-archive:FILE[:NAME], what `docker save` writes
)

// HostName is the image of kind [Host].
const HostName = "host"

// The transports, named as skopeo and podman name them (containers-transports(5)).
// An image of that name on Docker Hub is written docker.io/library/oci:TAG.
const (
	layoutPrefix  = "oci:"
	archivePrefix = "docker-archive:"
)

// Ref is a parsed reference. The zero Ref names nothing. Refs are comparable.
type Ref struct {
	Kind Kind
	// Name is, for a Registry, the full name with its registry and, without a
	// Digest, its tag; for a Layout the tag; for an Archive the full name and tag
	// of one image in it. Empty: the only image.
	Name string
	// Digest of the manifest, "sha256:…", or empty. For Registry and Layout only.
	Digest string
	// Path of a Layout's directory or an Archive's file, as written.
	Path string
	// Content is the hash that a Layout's index.json or an Archive must have,
	// "sha256:…", or empty.
	Content string
}

// Error is an invalid reference, with a hint.
type Error struct{ Ref, Problem, Hint string }

// Error returns one line.
func (e *Error) Error() string {
	return fmt.Sprintf("image %q %s: %s", e.Ref, e.Problem, e.Hint)
}

const (
	generalHint = "write NAME:TAG or NAME@sha256:… in lower case, oci:DIR, docker-archive:FILE, or `host`"
	layoutHint  = "write oci:DIR, oci:DIR:TAG or oci:DIR@sha256:…"
	archiveHint = "write docker-archive:FILE or docker-archive:FILE:NAME:TAG"
)

// maxLength of a reference in bytes.
const maxLength = 4096

var (
	atDigest  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`@sha256:[0-9a-f]{64}$`) })
	atContent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#sha256:[0-9a-f]{64}$`) })
	// tagOf is the grammar of org.opencontainers.image.ref.name (OCI image
	// specification, annotations).
	tagOf = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9]+([-._:@/+][A-Za-z0-9]+)*$`)
	})
)

// Parse reads a reference. What is wrong with it is an [Error].
func Parse(s string) (Ref, error) {
	if len(s) > maxLength {
		return Ref{}, &Error{s[:64] + "…", "is too long", fmt.Sprintf("at most %d bytes are allowed", maxLength)}
	}
	if s == HostName {
		return Ref{Kind: Host}, nil
	}
	if rest, ok := strings.CutPrefix(s, layoutPrefix); ok {
		return parseLayout(s, rest)
	}
	if rest, ok := strings.CutPrefix(s, archivePrefix); ok {
		return parseArchive(s, rest)
	}
	named, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return Ref{}, &Error{s, "is not an image reference", generalHint}
	}
	r := Ref{Kind: Registry, Name: reference.TagNameOnly(named).String()}
	if d, ok := named.(reference.Digested); ok {
		r.Name, r.Digest = strings.TrimSuffix(named.String(), "@"+d.Digest().String()), d.Digest().String()
	}
	return r, nil
}

// cutContent cuts off a hash of files.
func cutContent(s string) (name, content string) {
	if at := atContent().FindStringIndex(s); at != nil {
		return s[:at[0]], s[at[0]+1:]
	}
	return s, ""
}

// WithoutContent is the text of a reference without a hash of files.
func WithoutContent(s string) string {
	name, _ := cutContent(s)
	return name
}

func parseLayout(s, rest string) (Ref, error) {
	rest, content := cutContent(rest)
	r := Ref{Kind: Layout, Path: rest, Content: content}
	if at := atDigest().FindStringIndex(rest); at != nil {
		r.Path, r.Digest = rest[:at[0]], rest[at[0]+1:]
	} else if dir, tag, ok := strings.Cut(rest, ":"); ok {
		r.Path, r.Name = dir, tag
		if strings.HasSuffix(dir, "@sha256") {
			return Ref{}, &Error{s, "has an invalid digest", layoutHint}
		}
		if !tagOf().MatchString(tag) {
			return Ref{}, &Error{s, "has an invalid tag", layoutHint}
		}
	}
	return checked(s, r, layoutHint)
}

func parseArchive(s, rest string) (Ref, error) {
	rest, content := cutContent(rest)
	r := Ref{Kind: Archive, Path: rest, Content: content}
	if file, name, ok := strings.Cut(rest, ":"); ok {
		named, err := reference.ParseNormalizedNamed(name)
		if err != nil {
			return Ref{}, &Error{s, "has an invalid name of an image in the archive", archiveHint}
		}
		if _, ok := named.(reference.Digested); ok {
			return Ref{}, &Error{s, "has a digest, which archives don't keep", archiveHint}
		}
		r.Path, r.Name = file, reference.TagNameOnly(named).String()
	}
	return checked(s, r, archiveHint)
}

// checked returns r if its path is valid.
func checked(s string, r Ref, hint string) (Ref, error) {
	switch p := r.Path; {
	case p == "":
		return Ref{}, &Error{s, "has no path", hint}
	case strings.Contains(p, ":"):
		return Ref{}, &Error{s, "has a colon in its path", hint + "; the path has none"}
	case strings.HasPrefix(p, "~"):
		return Ref{}, &Error{s, "has a ~, which is not expanded", "write the full path, or one relative to workshop.yaml"}
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return Ref{}, &Error{s, "has characters that are not allowed in a path", hint}
	}
	return r, nil
}

// OnMachine reports whether the image is read from a directory or file.
func (r Ref) OnMachine() bool { return r.Kind == Layout || r.Kind == Archive }

// In returns the reference with its path, if any, resolved relative to a directory:
// that of workshop.yaml.
func (r Ref) In(dir string) Ref {
	if r.OnMachine() && !path.IsAbs(r.Path) {
		r.Path = path.Join(dir, r.Path)
	}
	return r
}

// String returns the full reference. [Parse] parses it again, unless [Ref.In] added a
// directory with a colon.
func (r Ref) String() string {
	digest, name, content := "", "", ""
	if r.Content != "" {
		content = "#" + r.Content
	}
	if r.Digest != "" {
		digest = "@" + r.Digest
	}
	if r.Name != "" {
		name = ":" + r.Name
	}
	switch r.Kind {
	case Registry:
		return r.Name + digest
	case Host:
		return HostName
	case Layout:
		return layoutPrefix + r.Path + name + digest + content
	case Archive:
		return archivePrefix + r.Path + name + content
	}
	return ""
}

// RegistryHost returns the host and port of a Registry's registry ("docker.io"), or "".
func (r Ref) RegistryHost() string {
	if r.Kind != Registry {
		return ""
	}
	host, _, _ := strings.Cut(r.Name, "/")
	return host
}
