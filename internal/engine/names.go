package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/image/reference"
)

// ContainerName returns the name of a service's container, as Compose forms it.
func ContainerName(p *types.Project, service string) string {
	if s, ok := p.Services[service]; ok && s.ContainerName != "" {
		return s.ContainerName
	}
	return p.Name + "-" + service + "-1"
}

// VolumeName returns the engine's name of a volume of the project.
func VolumeName(p *types.Project, key string) string {
	if v := p.Volumes[key]; v.Name != "" {
		return v.Name
	}
	return p.Name + "_" + key
}

// NetworkName returns the engine's name of a network of the project.
func NetworkName(p *types.Project, key string) string {
	if n := p.Networks[key]; n.Name != "" {
		return n.Name
	}
	return p.Name + "_" + key
}

// ImageRef returns the reference of a service's image: the one it names, with the
// path of an image in files made absolute, or with a build section a name derived
// from the content.
func ImageRef(d Desired, service string) string {
	s := d.Compiled.Project.Services[service]
	if s.Build == nil {
		f := d.Compiled.Facts
		if r, err := reference.Parse(s.Image); err == nil && r.OnMachine() && f != nil && f.ProjectDir != "" {
			return r.In(f.ProjectDir).String()
		}
		return s.Image
	}
	hash := d.Builds[service]
	if hash == "" {
		sum := sha256.Sum256([]byte(service))
		hash = "unhashed" + hex.EncodeToString(sum[:])
	}
	return d.Compiled.Project.Name + "-build:" + hash[:min(16, len(hash))]
}

// DesiredImages lists the image references of a plan, sorted and without
// duplicates.
func DesiredImages(d Desired) []string {
	refs := map[string]bool{}
	for name := range d.Compiled.Project.Services {
		ref := ImageRef(d, name)
		refs[ref] = true
		if tag := tagOf(ref); tag != "" {
			refs[tag] = true
		}
	}
	if f := d.Compiled.Facts; f != nil && f.InitImage != "" {
		refs[f.InitImage] = true
	}
	return sortedKeys(refs)
}

// tagOf is a reference with a tag and a digest without the digest, which a lock gave it;
// else empty.
func tagOf(ref string) string {
	r, err := reference.Parse(ref)
	if err != nil || r.Kind != reference.Registry || r.Digest == "" {
		return ""
	}
	tag, _, _ := strings.Cut(ref, "@")
	if !strings.Contains(tag[strings.LastIndexByte(tag, '/')+1:], ":") {
		return ""
	}
	return tag
}

// ProjectDirectory returns the project directory in an object's labels, or "".
// Compose programs record the directory of the compose file, which is
// .workshop/<name> in the project.
func ProjectDirectory(labels map[string]string) string {
	if dir := labels[compose.LabelDirectory]; dir != "" {
		return dir
	}
	dir := labels[LabelWorkingDir]
	if parent := filepath.Dir(dir); dir != "" && filepath.Base(parent) == ".workshop" {
		return filepath.Dir(parent)
	}
	return dir
}

// suggestProject returns a project name unique to the directory.
func suggestProject(project, directory string) string {
	var b strings.Builder
	base := strings.ToLower(filepath.Base(directory))
	if base == project { // of another clone
		base = strings.ToLower(filepath.Base(filepath.Dir(directory)))
	}
	for _, r := range base {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('-')
		}
	}
	if directory == "" {
		return project + "-workshop"
	}
	name := project + "-" + cmp.Or(strings.Trim(b.String(), "-_"), "2")
	return strings.TrimRight(name[:min(len(name), 63)], "-_")
}
