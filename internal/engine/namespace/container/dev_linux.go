package container

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// devices are harmless devices of the machine that every program may need.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// devLinks are symbolic links that programs expect besides the devices.
var devLinks = [][2]string{
	{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
}

// dev makes the container's /dev. The devices are the machine's files: only its root
// can create others.
func (s *stage) dev() error {
	fd, err := newMount("tmpfs", noSetuid|noExec, number("size", 64<<10), mode(0o755), number("nr_inodes", 64))
	if err == nil {
		err = s.special(fd, "/dev")
	}
	if err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	s.devDir = fd
	for _, name := range append(devices[:len(devices):len(devices)], s.c.Devices...) {
		if err := s.device(name); err != nil {
			return fmt.Errorf("/dev/%s: %w", name, err)
		}
	}
	for _, l := range devLinks {
		if err := unix.Symlinkat(l[0], fd, l[1]); err != nil {
			return fmt.Errorf("/dev/%s: %w", l[1], err)
		}
	}
	// The whole machine has some thousand.
	pts := []option{{"ptmxmode", "0666"}, {"mode", "0620"}, {"max", "512"}}
	// Terminals belong to the group tty, if there is one.
	terminals, err := newMount("devpts", noSetuid|noExec, append(pts, option{"gid", "5"})...)
	if err != nil {
		terminals, err = newMount("devpts", noSetuid|noExec, pts...)
	}
	if err := s.devMount(terminals, err, "pts"); err != nil {
		return err
	}
	if s.c.Limits.Shm > 0 {
		shm, err := newMount("tmpfs", kernelFS, append(sized(s.c.Limits.Shm), mode(0o1777))...)
		if err := s.devMount(shm, err, "shm"); err != nil {
			return err
		}
		s.writable = append(s.writable, shm)
	}
	queues, err := newMount("mqueue", kernelFS)
	if err == unix.ENODEV {
		return nil // a kernel without
	}
	return s.devMount(queues, err, "mqueue")
}

func (s *stage) device(name string) error {
	source := s.null
	if name != "null" {
		fd, err := unix.Open("/dev/"+name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		source = fd
	}
	var st unix.Stat_t
	if err := unix.Fstat(source, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return fmt.Errorf("not a device on this machine")
	}
	// Read-only, as the file, its owner and mode are the machine's. Writing to the
	// device itself still works.
	fd, err := clone(source, noSetuid|noExec|readOnly, false)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Mknodat(s.devDir, name, unix.S_IFREG|0o644, 0); err != nil {
		return err
	}
	return unix.MoveMount(fd, "", s.devDir, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// devMount mounts a file system in /dev.
func (s *stage) devMount(fd int, err error, name string) error {
	if err == nil {
		err = unix.Mkdirat(s.devDir, name, 0o755)
	}
	if err == nil {
		err = unix.MoveMount(fd, "", s.devDir, name, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("/dev/%s: %w", name, err)
	}
	return nil
}
