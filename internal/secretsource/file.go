package secretsource

import (
	"fmt"
	"os"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// readFile reads a regular file that nobody but its owner, the caller, may read or write.
func readFile(name string) ([]byte, error) {
	f, err := boundedfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := Private(f); err != nil {
		return nil, err
	}
	return boundedfile.ReadOpen(f, MaxValue+2)
}

// Private refuses an open file that others than the caller own, or may read or write.
func Private(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.Name())
	}
	uid, _, known := fileowner.Of(info)
	if !known {
		return nil // this system has no such owners and modes
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d, not to you (%d)", f.Name(), uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s can be read or changed by others (mode %04o): chmod 600 %s", f.Name(), mode, f.Name())
	}
	return nil
}
