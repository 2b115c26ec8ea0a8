package container

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/subpath"
)

// How a target is found: in the root, which nobody can change concurrently, an
// image's own symbolic links are followed, inside the root. In a mount, to which
// another container may be writing, none is followed.

// under returns the innermost mount so far that contains a target, and the target's
// path in it.
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

// resolve opens the current file at a target.
func (s *stage) resolve(base place, rel string) (int, error) {
	if s.isRoot(base) {
		return open(base.fd, rel, 0, unix.RESOLVE_IN_ROOT)
	}
	return open(base.fd, rel, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS)
}

// point opens a mount point. A missing one is created, but only in the root and in
// the container's tmpfs, never on the machine.
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
		return -1, fmt.Errorf("%s doesn't exist in the mount at %s, where nothing is created: create it", target, base.target)
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

// attach attaches a detached mount to its target and verifies it: the directory
// could have been moved away concurrently.
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
		return place{}, fmt.Errorf("source and target must both be directories or both be files")
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

// verify checks that the mount with this ID is visible at a target, before it is
// added to places.
func (s *stage) verify(target string, id uint64) error {
	base, rel := s.under(target)
	if rel == "." && !s.isRoot(base) { // on top of another mount, whose descriptor shows the covered directory
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
