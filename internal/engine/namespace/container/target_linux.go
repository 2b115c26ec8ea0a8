package container

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// How a target is found: in the root, which nobody can change meanwhile, an
// image's own symbolic links are followed, below the root. In a mount, which
// another container may have for writing at this moment, none is.

// under returns the innermost mount so far in which a target lies, and what
// the target is called there.
func (s *stage) under(target string) (place, string) {
	best := s.root
	for _, p := range s.places { // the later of two at one target is on top
		if subpath.Within(target, p.target) && len(p.target) >= len(best.target) {
			best = p
		}
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(target, best.target), "/")
	if rel == "" {
		rel = "."
	}
	return best, rel
}

func (s *stage) isRoot(p place) bool { return p.fd == s.root.fd }

// resolve opens what is at a target now.
func (s *stage) resolve(base place, rel string) (int, error) {
	if s.isRoot(base) {
		return open(base.fd, rel, 0, unix.RESOLVE_IN_ROOT)
	}
	return open(base.fd, rel, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// point opens the place for a mount; what is missing of it is made, on the
// root and on the container's tmpfs alone. Nothing is ever made on the machine.
func (s *stage) point(target string, dir bool) (int, error) {
	base, rel := s.under(target)
	fd, err := s.resolve(base, rel)
	if err == unix.ENOENT {
		fd, err = s.makePoint(base, target, dir)
	}
	if err != nil {
		return -1, explain(err)
	}
	id, err := mountID(fd)
	if err != nil {
		return -1, err
	}
	if id != base.id && !base.recursive && !(s.isRoot(base) && s.own[id]) {
		unix.Close(fd)
		return -1, fmt.Errorf("a symbolic link leads into another mount")
	}
	return fd, nil
}

func (s *stage) makePoint(base place, target string, dir bool) (int, error) {
	if !s.own[base.id] {
		return -1, fmt.Errorf("%s doesn't exist in what is mounted at %s, and nothing is made there: make it", target, base.target)
	}
	parent, err := s.point(path.Dir(target), true)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	if id, err := mountID(parent); err != nil || !s.own[id] {
		return -1, errors.Join(err, fmt.Errorf("%s doesn't exist", target))
	}
	name := path.Base(target)
	if dir {
		err = unix.Mkdirat(parent, name, 0o755)
	} else {
		err = unix.Mknodat(parent, name, unix.S_IFREG|0o644, 0)
	}
	if err != nil && err != unix.EEXIST {
		return -1, err
	}
	return open(parent, name, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// attach puts a detached mount to its target and looks whether it is there:
// the directory could have been moved away meanwhile.
func (s *stage) attach(fd int, target string, dir bool) (place, error) {
	at, err := s.point(target, dir)
	if err != nil {
		return place{}, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return place{}, err
	}
	if (st.Mode&unix.S_IFMT == unix.S_IFDIR) != dir {
		return place{}, fmt.Errorf("one is a directory, the other isn't")
	}
	if err := move(fd, at); err != nil {
		return place{}, err
	}
	id, err := mountID(fd)
	if err != nil {
		return place{}, err
	}
	if err := s.verify(target, id); err != nil {
		return place{}, err
	}
	p := place{target: target, fd: fd, id: id}
	s.places = append(s.places, p)
	return p, nil
}

// verify looks whether the mount with this number is what is seen at a target,
// before it is one of places.
func (s *stage) verify(target string, id uint64) error {
	base, rel := s.under(target)
	if rel == "." && !s.isRoot(base) { // on top of another mount: its descriptor shows what is below
		base, rel = s.root, strings.TrimPrefix(target, "/")
	}
	seen, err := s.resolve(base, rel)
	if err != nil {
		return fmt.Errorf("it was changed while it was mounted: %w", err)
	}
	defer unix.Close(seen)
	if now, err := mountID(seen); err != nil || now != id {
		return errors.Join(err, fmt.Errorf("it was changed while it was mounted"))
	}
	return nil
}

// move attaches a detached mount.
func move(fd, at int) error {
	return unix.MoveMount(fd, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
