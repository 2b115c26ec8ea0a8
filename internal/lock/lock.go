// Package lock is workshop.lock: what was reviewed of a workshop. It has the content of
// every file that was compiled, the digest of every image, and in words all that workers
// are granted, so that a change of any of them is seen in a review and refused where
// what runs must be what was reviewed (B46). The package is pure.
//
// A lock depends on files of the repository alone: it has no times, no absolute paths and
// no values of variables, and is the same on every machine.
package lock

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/firewall/presets"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/workshop"
)

// Version is the version of the format.
const Version = 1

// MaxSize bounds a file, in bytes.
const MaxSize = 16 << 20

// Lock is the content of a file. The maps are never nil in one that [New] or [Parse]
// made.
type Lock struct {
	// Files has the hash of each file that was compiled, by its path relative to
	// workshop.yaml: "sha256:" and hexadecimal digits.
	Files map[string]string
	// Sources are what came from other repositories, by their IDs.
	Sources map[string]Source
	// Images by their references as workshop.yaml has them.
	Images map[string]Image
	// Builds has the hash of what each image is built of, by its words ([BuildName]).
	Builds map[string]string
	// Presets has the hash of the lines of each that is used.
	Presets map[string]string
	// Can are all grants in words, in order.
	Can []string
}

// Image is what a reference meant when it was locked.
type Image struct {
	// Digest of the index or manifest, "sha256:…"; empty for an image that isn't pinned:
	// it exists on single machines only, or its reference has variables.
	Digest string
	// Platforms has the manifest of each platform of an index, by "linux/amd64".
	Platforms map[string]string
}

// FileOf returns the name of the lock of a workshop file.
func FileOf(file string) string {
	return strings.TrimSuffix(file, path.Ext(file)) + ".lock"
}

// ErrLink refuses a lock that is a symbolic link: what it leads to may be exchanged without
// a change of any file that is reviewed as a lock.
var ErrLink = errors.New("is a symbolic link, want a regular file")

// Read reads the text of a file.
func Read(fsys fs.FS, name string) ([]byte, error) {
	if info, err := fs.Lstat(fsys, name); err == nil && info.Mode().Type() == fs.ModeSymlink {
		return nil, ErrLink
	}
	return boundedfile.ReadFS(fsys, name, MaxSize)
}

// New returns the lock of a workshop that was compiled from files, by their paths relative
// to workshop.yaml. Images that must be looked up in a registry are there without a digest
// ([Lock.Unresolved] names them), and so are builds without a hash ([Lock.MustHash]).
func New(w *workshop.Workshop, files map[string][]byte) *Lock {
	l := Empty()
	for name, text := range files {
		l.Files[name] = HashText(text)
	}
	used := map[string]bool{}
	containers := []*workshop.Container{&w.Container}
	for i := range w.Workers {
		containers = append(containers, &w.Workers[i].Container)
	}
	for i, c := range containers {
		if i > 0 { // all workers may have others than the workshop's
			if c.Build != nil {
				l.Builds[BuildName(c.Build)] = unpinned
			} else if c.Image.V != "" || c.Image.Source.Template != "" {
				l.Images[imageName(c)] = pinnedByName(c)
			}
		}
		for _, r := range c.Network.Allow {
			used[r.Preset] = true
		}
	}
	for name := range used {
		if p, ok := presets.Get(name); ok {
			l.Presets[name] = hashRules(p.Rules)
		}
	}
	return l
}

// Empty returns a lock of nothing.
func Empty() *Lock {
	return &Lock{Files: map[string]string{}, Sources: map[string]Source{}, Images: map[string]Image{}, Builds: map[string]string{}, Presets: map[string]string{}}
}

// Describe puts the grants of a workshop into the lock, once its images are known.
func (l *Lock) Describe(w *workshop.Workshop) {
	l.Can = nil
	var limits []string
	lines := grant.Workshop(w, grant.Symbols)
	for i, g := range lines {
		if part := limitText(g); part != "" {
			limits = append(limits, part)
			if i+1 == len(lines) || limitText(lines[i+1]) == "" || lines[i+1].Worker != g.Worker {
				l.Can = append(l.Can, g.Worker+" limits "+strings.Join(limits, ", "))
				limits = nil
			}
			continue
		}
		if img, known := l.Images[g.Text]; g.Surface == grant.Image && known && img.Digest == "" {
			g.Text += " " + unpinned
		}
		l.Can = append(l.Can, g.String())
	}
}

// limitText is a line about a limit as a part of one line for all; else empty.
func limitText(g grant.Line) string {
	switch g.Surface {
	case grant.Memory, grant.CPU, grant.PIDs, grant.Timeout, grant.Scratch, grant.Tmp, grant.Shm, grant.Home:
		return string(g.Surface) + " " + g.Text
	}
	return ""
}

// imageName is the reference as the file has it: with its variables.
func imageName(c *workshop.Container) string {
	if t := c.Image.Source.Template; t != "" {
		return t
	}
	return c.Image.V
}

// pinnedByName is what a reference itself says: its digest, or the hash of its files.
func pinnedByName(c *workshop.Container) Image {
	if c.Image.Source.Template != "" {
		return Image{}
	}
	r, err := reference.Parse(c.Image.V)
	if err != nil {
		return Image{}
	}
	return Image{Digest: cmp.Or(r.Digest, r.Content)}
}

// Pinnable reports whether a reference of the lock can be looked up in a registry: it
// has no variables, names an image of one, and has no digest itself.
func Pinnable(name string) bool {
	r, err := reference.Parse(name)
	return err == nil && r.Kind == reference.Registry && r.Digest == "" && !strings.Contains(name, "$")
}

// InFiles returns the reference of an image whose files can be hashed: it has no variables,
// and nothing in it says what they must be.
func InFiles(name string) (reference.Ref, bool) {
	r, err := reference.Parse(name)
	return r, err == nil && r.OnMachine() && r.Digest+r.Content == "" && !strings.Contains(name, "$")
}

// Unresolved are the images that can be looked up and have no digest, in order.
func (l *Lock) Unresolved() []string {
	var out []string
	for name, img := range l.Images {
		if img.Digest == "" && Pinnable(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// MustHash reports whether what a build is made from has no hash yet. Where variables
// decide what that is, it has none.
func (l *Lock) MustHash(b *workshop.Build) bool {
	return l.Builds[BuildName(b)] == unpinned && b.Context.Source.Template+b.Dockerfile.Source.Template == ""
}

// Hashed reports whether a build of a lock has a hash.
func Hashed(build string) bool { return build != "" && build != unpinned }

// BuildName is a build in words, with its variables.
func BuildName(b *workshop.Build) string { return grant.BuildText(b, grant.Symbols) }

// HashText is the hash of a text, whatever ends its lines: a checkout may have changed
// that.
func HashText(text []byte) string {
	return hash(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func hashRules(rules []presets.Rule) string {
	var b strings.Builder
	for _, r := range rules {
		b.WriteString(r.Host.String() + " " + firewall.FormatPorts(r.Ports) + "\n")
	}
	return hash([]byte(b.String()))
}

// Pin returns the workshop with each locked image as NAME:TAG@DIGEST, and of files as
// oci:DIR#DIGEST. w isn't changed.
func (l *Lock) Pin(w *workshop.Workshop) *workshop.Workshop {
	out := *w
	out.Workers = slices.Clone(w.Workers)
	pin := func(c *workshop.Container) {
		name := imageName(c)
		img := l.Images[name]
		if c.Build != nil || img.Digest == "" {
			return
		}
		if _, inFiles := InFiles(name); inFiles {
			c.Image.V += "#" + img.Digest
		} else if Pinnable(name) {
			c.Image.V += "@" + img.Digest
		}
	}
	pin(&out.Container)
	for i := range out.Workers {
		pin(&out.Workers[i].Container)
	}
	return &out
}

// Take takes what only a registry knows of images from another lock.
func (l *Lock) Take(from *Lock) {
	for name, img := range l.Images {
		if known, ok := from.Images[name]; ok && img.Digest == "" && Pinnable(name) {
			l.Images[name] = known
		}
	}
}
