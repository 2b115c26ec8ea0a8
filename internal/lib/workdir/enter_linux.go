package workdir

import (
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// Enter makes dir the working directory of this process.
func Enter(dir string) error {
	d, err := Open(dir)
	if err != nil {
		return fmt.Errorf("workdir %w", err)
	}
	defer d.Close()
	if err := unix.Fchdir(int(d.Fd())); err != nil {
		return fmt.Errorf("workdir %s: %w", dir, err)
	}
	return nil
}

// Make creates dir, an absolute path, with missing parents, as the worker's user.
func Make(dir string) error {
	if err := makeAll(path.Clean(dir)); err != nil {
		return fmt.Errorf("workdir %w", err)
	}
	return nil
}

func makeAll(dir string) error {
	d, err := Open(dir)
	if err == nil {
		return d.Close()
	}
	if !errors.Is(err, unix.ENOENT) || dir == "/" {
		return err
	}
	above := path.Dir(dir)
	if err := makeAll(above); err != nil {
		return err
	}
	parent, err := Open(above)
	if err != nil {
		return err
	}
	defer parent.Close()
	if err := unix.Mkdirat(int(parent.Fd()), path.Base(dir), 0o777); err != nil && err != unix.EEXIST {
		return fmt.Errorf("%s: there is no such directory in the worker, and it can't be made (%w): make it in the mount's source, or change `workdir` in workshop.yaml", dir, err)
	}
	return nil
}
