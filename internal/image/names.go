package image

import (
	"fmt"
	"path"
	"strings"
)

// Whiteouts, as the OCI image specification has them (layer.md, from AUFS).
const (
	whiteout       = ".wh."         // and a name: that one of the layers below is gone
	whiteoutOpaque = ".wh..wh..opq" // all of this directory's in the layers below is gone
	whiteoutMeta   = ".wh..wh."     // AUFS's own bookkeeping, which means nothing here
)

// entryPath converts an entry's name to a path below the root: clean, relative, "" for
// the root itself. As in Docker a leading slash is the image's root. An ambiguous name
// is an error.
func (l *Limits) entryPath(name string) (string, error) {
	if len(name) > l.Name {
		return "", fmt.Errorf("the name %.40q… has more than %d bytes", name, l.Name)
	}
	if strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("the name %q has a zero byte", name)
	}
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return "", fmt.Errorf("the name %q has a .., which could lead out of the image", name)
		case len(part) > maxComponent:
			return "", fmt.Errorf("the name %.40q… has a part of more than %d bytes", name, maxComponent)
		}
		parts = append(parts, part)
	}
	if len(parts) > l.Depth {
		return "", fmt.Errorf("the name %.40q… is deeper than %d directories", name, l.Depth)
	}
	for i := range max(len(parts)-1, 0) {
		if strings.HasPrefix(parts[i], whiteout) {
			return "", fmt.Errorf("the name %q lies below a whiteout", name)
		}
	}
	return strings.Join(parts, "/"), nil
}

// hidden returns what a whiteout at p removes: a path, and whether only its content is
// removed (opaque). For AUFS's bookkeeping the path is "".
func hidden(p string) (target string, opaque, isWhiteout bool, err error) {
	dir, base := path.Split(p)
	name, ok := strings.CutPrefix(base, whiteout)
	switch {
	case !ok:
		return "", false, false, nil
	case base == whiteoutOpaque:
		return strings.TrimSuffix(dir, "/"), true, true, nil
	case strings.HasPrefix(base, whiteoutMeta):
		return "", false, true, nil
	case name == "" || name == "." || name == "..":
		return "", false, true, fmt.Errorf("the whiteout %q names nothing that it could remove", p)
	}
	return dir + name, false, true, nil
}
