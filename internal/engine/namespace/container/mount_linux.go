package container

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// Attributes of mounts.
const (
	noSetuid = unix.MOUNT_ATTR_NOSUID
	noDevice = unix.MOUNT_ATTR_NODEV
	noExec   = unix.MOUNT_ATTR_NOEXEC
	readOnly = unix.MOUNT_ATTR_RDONLY
)

// option is an option of a file system; without a value it is a flag.
type option struct{ key, value string }

// newMount makes a file system and a detached mount of it.
func newMount(fs string, attributes int, options ...option) (int, error) {
	fd, err := unix.Fsopen(fs, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, explain(err)
	}
	defer unix.Close(fd)
	for _, o := range options {
		if o.value == "" {
			err = unix.FsconfigSetFlag(fd, o.key)
		} else {
			err = unix.FsconfigSetString(fd, o.key, o.value)
		}
		if err != nil {
			return -1, because(fd, fmt.Errorf("%s=%s: %w", o.key, o.value, err))
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return -1, because(fd, err)
	}
	m, err := unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return -1, because(fd, err)
	}
	return m, nil
}

// because adds the kernel's explanation to an error.
func because(fd int, err error) error {
	var buf [512]byte
	if n, _ := unix.Read(fd, buf[:]); n > 2 && buf[0] == 'e' {
		return fmt.Errorf("%w (%s)", err, strings.TrimSpace(string(buf[2:n])))
	}
	return err
}

func number(key string, n int64) option { return option{key, strconv.FormatInt(n, 10)} }

// sized bounds a tmpfs: its bytes, and by its inodes the memory of empty files.
func sized(n int64) []option {
	return []option{number("size", n), number("nr_inodes", max(n/1024, 1024))}
}

func mode(m uint32) option { return option{"mode", strconv.FormatUint(uint64(m), 8)} }

// clone makes a detached mount of an existing file or directory.
func clone(fd int, attributes uint64, recursive bool) (int, error) {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	m, err := unix.OpenTree(fd, "", flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, explain(err)
	}
	if err := unix.MountSetattr(m, "", flags, &unix.MountAttr{Attr_set: attributes, Propagation: unix.MS_PRIVATE}); err != nil {
		unix.Close(m)
		return -1, fmt.Errorf("its attributes: %w", explain(err))
	}
	return m, nil
}

// mounts makes the mounts of the spec.
func (s *stage) mounts() error {
	for i := range s.c.Mounts {
		m := &s.c.Mounts[i]
		do := s.bind
		if m.Type == spec.Tmpfs {
			do = s.tmpfs
		}
		if err := do(m); err != nil {
			return fmt.Errorf("%s at %s: %w", m.Type, m.Target, err)
		}
	}
	return nil
}

func (s *stage) bind(m *spec.Mount) error {
	source, dir, err := s.openSource(m.Source)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Source, err)
	}
	defer unix.Close(source)
	attributes := uint64(noSetuid | noDevice)
	if m.ReadOnly {
		attributes |= readOnly
	}
	if m.NoExec {
		attributes |= noExec
	}
	fd, err := clone(source, attributes, m.Recursive)
	if err == unix.EINVAL && !m.Recursive {
		return fmt.Errorf("%s: a file system is mounted below it, which can't be left out without root", m.Source)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.Source, err)
	}
	p, err := s.attach(fd, m.Target, dir)
	if err != nil {
		return err
	}
	s.places[len(s.places)-1].recursive = m.Recursive
	if !m.ReadOnly {
		s.writable = append(s.writable, p.fd)
	}
	return nil
}

func (s *stage) tmpfs(m *spec.Mount) error {
	attributes := noSetuid | noDevice
	if m.NoExec {
		attributes |= noExec
	}
	options := sized(m.Size)
	if m.Mode != 0 {
		options = append(options, mode(m.Mode))
	}
	if m.UID != 0 || m.GID != 0 { // else the mounter's: root, or the unprivileged user
		options = append(options, number("uid", int64(m.UID)), number("gid", int64(m.GID)))
	}
	fd, err := newMount("tmpfs", attributes, options...)
	if err != nil {
		return fmt.Errorf("size %d, owner %d:%d: %w", m.Size, m.UID, m.GID, err)
	}
	p, err := s.attach(fd, m.Target, true)
	if err != nil {
		return err
	}
	s.own[p.id] = true
	s.writable = append(s.writable, p.fd)
	return nil
}
