package container

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newRoot makes the root file system and mounts it over the old root directory, so
// that mounts can be attached to it; paths still lead into the old one.
func (s *stage) newRoot() error {
	// From here on mounts propagate neither in nor out.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	var err error
	if s.outside, err = unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	if s.null, err = unix.Open("/dev/null", unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("/dev/null: %w", err)
	}
	// Its content is mainly the files of the spec.
	size := int64(1 << 20)
	for _, f := range s.c.Files {
		size += int64(len(f.Data)) + 4096
	}
	fd, err := newMount("tmpfs", noSetuid|noDevice, number("size", size), mode(0o755), number("nr_inodes", 8192))
	if err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	if err := s.over(fd); err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	if s.c.Root.Dir != "" {
		if fd, err = s.overlay(fd); err != nil {
			return fmt.Errorf("the root %s: %w", s.c.Root.Dir, err)
		}
	}
	id, err := mountID(fd)
	if err != nil {
		return err
	}
	s.root = place{target: "/", fd: fd, id: id}
	s.own = map[uint64]bool{id: true}
	return nil
}

// over attaches a mount over the root directory.
func (s *stage) over(fd int) error {
	return unix.MoveMount(fd, "", s.outside, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// overlay mounts the image under a layer for mount points and the files of the
// spec. It becomes read-only later.
func (s *stage) overlay(layer int) (int, error) {
	lower, dir, err := s.openSource(s.c.Root.Dir)
	if err != nil {
		return -1, err
	}
	defer unix.Close(lower)
	if !dir {
		return -1, fmt.Errorf("not a directory")
	}
	for _, name := range []string{"upper", "work"} {
		if err := unix.Mkdirat(layer, name, 0o755); err != nil {
			return -1, err
		}
	}
	// The upper directory becomes the root: it gets the image's owner and mode.
	var st unix.Stat_t
	if err := unix.Fstat(lower, &st); err != nil {
		return -1, err
	}
	if err := unix.Fchmodat(layer, "upper", st.Mode&0o7777, 0); err != nil {
		return -1, err
	}
	// By descriptors, so that no character of a path is special.
	options := []option{
		{"lowerdir", fmt.Sprintf("/proc/self/fd/%d", lower)},
		{"upperdir", fmt.Sprintf("/proc/self/fd/%d/upper", layer)},
		{"workdir", fmt.Sprintf("/proc/self/fd/%d/work", layer)},
	}
	if groupsDenied() { // without root there are no other extended attributes
		options = append(options, option{"userxattr", ""})
	}
	fd, err := newMount("overlay", noSetuid|noDevice, options...)
	if err != nil {
		return -1, err
	}
	// Only the overlay may keep the layer. At most one mount may be over the old
	// root: pivot removes the old root, but no further mount that covers it.
	if err := unix.Fchdir(layer); err != nil {
		return -1, err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return -1, fmt.Errorf("its layer: %w", err)
	}
	return fd, s.over(fd)
}

// readOnlyRoot makes the root read-only.
func (s *stage) readOnlyRoot() error {
	for _, fd := range []int{s.root.fd, s.devDir} {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: readOnly}); err != nil {
			return fmt.Errorf("a read-only root: %w", err)
		}
	}
	return nil
}

// pivot makes the new root the root of this process and of its namespace, and
// unmounts the old one with everything mounted in it.
func (s *stage) pivot() error {
	if err := unix.Fchdir(s.root.fd); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		if err == unix.EINVAL {
			err = fmt.Errorf("%w (not possible on a machine that runs from its initial RAM disk: its root mount can't be replaced)", err)
		}
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Fchdir(s.outside); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("the old root can't be unmounted: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	// A leftover mount over the root would be reached by "/..".
	for _, p := range []string{"/", "/.."} {
		if id, err := openID(p); err != nil || id != s.root.id {
			return fmt.Errorf("%s is not the container's root (%v)", p, err)
		}
	}
	return nil
}

func openID(p string) (uint64, error) {
	fd, err := unix.Open(p, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return mountID(fd)
}
