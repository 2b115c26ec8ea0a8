package lock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is what a difference is about.
type Kind string

// The kinds, in the order in which they are listed.
const (
	File    Kind = "file"
	SourceK Kind = "source"
	ImageK  Kind = "image"
	Build   Kind = "build"
	Preset  Kind = "preset"
	Can     Kind = "can"
	Form    Kind = "form" // other bytes that mean the same
)

// Difference is one thing in which a workshop isn't what its lock says.
type Difference struct {
	Kind Kind
	// Name of the file, source, image, build or preset; for a grant its line.
	Name string
	// Field is the part of a source; empty: all of it.
	Field string
	// Locked and Now are what the lock and the workshop have; empty for nothing.
	Locked, Now string
}

// String is one line that says it.
func (d Difference) String() string {
	switch {
	case d.Kind == Form:
		return "the lock isn't as `workshop lock` writes it"
	case d.Kind == Can && d.Locked == "":
		return "+ " + d.Name
	case d.Kind == Can:
		return "- " + d.Name
	case d.Field != "":
		return fmt.Sprintf("source %s: %s is %s, locked as %s", d.Name, d.Field, cmp.Or(d.Now, "none"), cmp.Or(d.Locked, "none"))
	case d.Locked == "":
		return fmt.Sprintf("%s %s isn't in the lock", d.Kind, d.Name)
	case d.Now == "":
		return fmt.Sprintf("%s %s is in the lock and not used", d.Kind, d.Name)
	case d.Kind == ImageK && digestIn(d.Now) == digestIn(d.Locked):
		return fmt.Sprintf("image %s is another one for some platforms", d.Name)
	}
	return fmt.Sprintf("%s %s is %s, locked as %s", d.Kind, d.Name, short(d.Now), short(d.Locked))
}

// digestIn is the digest in the text of an image.
func digestIn(image string) string {
	digest, _, _ := strings.Cut(strings.TrimPrefix(image, "{digest: "), ",")
	return digest
}

// short is enough of a hash to tell two apart.
func short(hash string) string {
	hash = digestIn(hash)
	return hash[:min(len(hash), len("sha256:")+12)]
}

// Check is [Compare] for a lock as a file has it: its bytes must be those that Render
// gives, except for the ends of lines.
func Check(text []byte, locked, now *Lock) []Difference {
	out := Compare(locked, now)
	written := *locked
	if !slices.ContainsFunc(out, func(d Difference) bool { return d.Kind == Can }) {
		written.Can = now.Can // in their order
	}
	if HashText(text) != HashText(written.Render()) {
		out = append(out, Difference{Kind: Form})
	}
	return out
}

// Compare returns in what a workshop, whose lock would be now, differs from the one that
// was locked.
func Compare(locked, now *Lock) []Difference {
	out := compare(File, locked.Files, now.Files)
	out = append(out, compareSources(locked.Sources, now.Sources)...)
	out = append(out, compareImages(locked.Images, now.Images)...)
	out = append(out, compare(Build, locked.Builds, now.Builds)...)
	out = append(out, compare(Preset, locked.Presets, now.Presets)...)
	return append(out, compareCan(locked.Can, now.Can)...)
}

func compare(k Kind, locked, now map[string]string) (out []Difference) {
	all := maps.Clone(locked)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if locked[name] != now[name] {
			out = append(out, Difference{Kind: k, Name: name, Locked: locked[name], Now: now[name]})
		}
	}
	return out
}

func compareImages(locked, now map[string]Image) []Difference {
	texts := func(images map[string]Image) map[string]string {
		out := map[string]string{}
		for name, img := range images {
			out[name] = img.String()
		}
		return out
	}
	return compare(ImageK, texts(locked), texts(now))
}

// compareCan compares as a multiset: the order is the program's.
func compareCan(locked, now []string) (out []Difference) {
	count := map[string]int{}
	for _, line := range locked {
		count[line]++
	}
	for _, line := range now {
		if count[line]--; count[line] < 0 {
			out = append(out, Difference{Kind: Can, Name: line, Now: line})
		}
	}
	for _, line := range locked {
		if count[line] > 0 {
			count[line]--
			out = append(out, Difference{Kind: Can, Name: line, Locked: line})
		}
	}
	return out
}
