package source

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"

	"github.com/Masterminds/semver/v3"

	"github.com/llmdo/workshop/internal/git"
	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/lib/clip"
)

// Version is what a workshop takes of a source: a range of releases, a tag, a commit or a
// digest.
type Version struct {
	text   string
	within *semver.Constraints // nil for anything but a range
}

var commitName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`) })

// maxVersion bounds a version, in bytes: a range of alternatives without end costs time.
const maxVersion = 100

// ParseVersion reads a version: "^1.4", "~1.4.2", ">=1.2, <2", a tag such as v1.4.2, a
// whole commit, or in a registry the digest of a manifest; "" is the newest release.
func ParseVersion(text string) (Version, error) {
	if len(text) > maxVersion || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return Version{}, fmt.Errorf("%q is not a version: want ^1.4, v1.4.2, or a commit or digest", clip.Bytes(text, 40))
	}
	v := Version{text: text}
	if strings.ContainsAny(text, "^~<>=*, |") || text == "" {
		within, err := semver.NewConstraint(text)
		if text == "" {
			within, err = semver.NewConstraint("*")
		}
		if err != nil || !plainRange(text) {
			return Version{}, fmt.Errorf("%q is not a range of versions: want ^1.4, ~1.4.2 or >=1.2, <2", text)
		}
		v.within = within
	}
	return v, nil
}

// plainRange reports whether each part of a list of bounds says which bound it is: ^1,0 is
// a slip, and would be within ^1 and nothing but 0.
func plainRange(text string) bool {
	for _, either := range strings.Split(text, "||") {
		if all := strings.Split(either, ","); len(all) > 1 {
			for _, bound := range all {
				if bound = strings.TrimSpace(bound); bound == "" || !strings.ContainsRune("^~<>=!", rune(bound[0])) {
					return false
				}
			}
		}
	}
	return true
}

// numbers are those of a version, as somebody writes them who means a release.
var numbers = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^v?([0-9]+(\.[0-9]+){0,2})$`) })

// versionLike is what somebody writes behind the @ of an address.
var versionLike = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\^~]?v?[0-9]+(\.[0-9]+){0,2}$`) })

// meant says what to write for a tag that isn't there and looks like a version; "" for
// another.
func (v Version) meant(refs []git.Ref) string {
	m := numbers().FindStringSubmatch(v.text)
	if m == nil {
		return ""
	}
	for r := range releases(refs) {
		if tag := strings.TrimPrefix(r.Name, tagPrefix); strings.TrimPrefix(tag, "v") == m[1] {
			return fmt.Sprintf("did you mean the tag %s, or ^%s for what is compatible? ", tag, m[1])
		}
	}
	within, err := ParseVersion("^" + m[1])
	if err != nil {
		return ""
	}
	if _, err := within.newest(refs); err != nil {
		return ""
	}
	return fmt.Sprintf("did you mean the range ^%s? ", m[1])
}

// String is the version as it was written.
func (v Version) String() string { return v.text }

// names reports whether the version is a commit, or the digest of a manifest in a registry.
func (v Version) names() bool { return commitName().MatchString(v.text) || image.IsDigest(v.text) }

// Allows reports whether what workshop.lock has is of this version: its ref is a tag within
// the range, or the tag, or its commit is the one. Nothing is asked.
func (v Version) Allows(ref, commit string) bool {
	tag, isTag := strings.CutPrefix(ref, "refs/tags/")
	switch {
	case v.within != nil:
		version, err := releaseOf(tag)
		return isTag && err == nil && v.within.Check(version)
	case v.names():
		return commit == v.text
	}
	return isTag && tag == v.text
}

// releaseOf is the version of a tag: v1.4.2 or 1.4.2, but not 1.4.
func releaseOf(tag string) (*semver.Version, error) {
	return semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
}

// IsRelease reports whether a tag is a version that ranges find.
func IsRelease(tag string) bool { _, err := releaseOf(tag); return err == nil }

// RangeOf is the range of versions that are compatible with a release: ^1.4 of v1.4.2, ^0.3.1
// of v0.3.1; of a prerelease itself.
func RangeOf(tag string) string {
	v, err := releaseOf(tag)
	if err != nil || v.Prerelease() != "" {
		return tag
	}
	if v.Major() == 0 {
		return "^" + v.String()
	}
	return fmt.Sprintf("^%d.%d", v.Major(), v.Minor())
}

// Resolve returns the tag or commit that a version means in a repository with these
// references: the newest release of a range, never a prerelease unless the range names
// one; and a commit only where a branch or tag points at it, since a server may have
// commits that nobody of the repository wrote.
func (v Version) Resolve(refs []git.Ref) (git.Ref, error) {
	switch {
	case v.within != nil:
		return v.newest(refs)
	case v.names():
		for _, r := range refs {
			if r.Commit == v.text {
				return r, nil
			}
		}
		return git.Ref{}, fmt.Errorf("no branch or tag points at the commit %s", v.text)
	}
	for _, r := range refs {
		if r.Name == "refs/tags/"+v.text {
			return r, nil
		}
	}
	for _, r := range refs {
		if r.Name == "refs/heads/"+v.text {
			return git.Ref{}, fmt.Errorf("%s is a branch, which means another commit every day: write a tag, a range of versions or the commit %s", v.text, r.Commit)
		}
	}
	return git.Ref{}, v.noTag(refs)
}

// noTag says what there is in place of a tag.
func (v Version) noTag(refs []git.Ref) error {
	return fmt.Errorf("there is no tag %s: %s%s", v.text, v.meant(refs), tagsText(refs))
}

// newest takes tags that are versions.
func (v Version) newest(refs []git.Ref) (best git.Ref, err error) {
	var top *semver.Version
	twin := "" // another tag of that version
	for r, version := range releases(refs) {
		if !v.within.Check(version) {
			continue
		}
		switch {
		case top == nil || version.GreaterThan(top):
			top, best, twin = version, r, ""
		case version.Equal(top) && (r.Commit != best.Commit || r.Commit == ""):
			twin = strings.TrimPrefix(r.Name, "refs/tags/")
		}
	}
	if twin != "" {
		return git.Ref{}, fmt.Errorf("the tags %s and %s are one version, and may differ: name one of them", strings.TrimPrefix(best.Name, "refs/tags/"), twin)
	}
	if top == nil {
		return git.Ref{}, errors.New("no tag is a version within " + v.text + ": " + tagsText(refs))
	}
	return best, nil
}

// newerThan is the tag of the newest release, if that is newer than a reference.
func newerThan(chosen string, refs []git.Ref) (tag string) {
	top, err := releaseOf(strings.TrimPrefix(chosen, "refs/tags/"))
	if err != nil {
		return ""
	}
	for r, version := range releases(refs) {
		if version.Prerelease() == "" && version.GreaterThan(top) {
			top, tag = version, strings.TrimPrefix(r.Name, "refs/tags/")
		}
	}
	return tag
}

// releases are the tags that are versions.
func releases(refs []git.Ref) iter.Seq2[git.Ref, *semver.Version] {
	return func(yield func(git.Ref, *semver.Version) bool) {
		for _, r := range refs {
			name, isTag := strings.CutPrefix(r.Name, "refs/tags/")
			if version, err := releaseOf(name); isTag && err == nil && !yield(r, version) {
				return
			}
		}
	}
}

// VersionError means that a source has no release of a version.
type VersionError struct{ Why error }

// Error implements [error].
func (e *VersionError) Error() string { return e.Why.Error() }

// versionsText names versions.
func versionsText(all []Version) string {
	var texts []string
	for _, v := range all {
		texts = append(texts, cmp.Or(v.text, "the newest"))
	}
	return strings.Join(texts, " and ")
}

// tagsText names the last tags.
func tagsText(refs []git.Ref) string {
	var tags []string
	for _, r := range refs {
		if name, ok := strings.CutPrefix(r.Name, "refs/tags/"); ok {
			tags = append(tags, name)
		}
	}
	if len(tags) == 0 {
		return "the repository has no tags"
	}
	more := ""
	const shown = 10
	if n := len(tags) - shown; n > 0 {
		tags, more = tags[n:], fmt.Sprintf(" and %d more", n)
	}
	return "it has " + strings.Join(tags, ", ") + more
}
