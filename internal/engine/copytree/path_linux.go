package copytree

import (
	"fmt"
	"os"
	"strconv"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// isAt refuses a directory that was opened by another path than its own: a
// symbolic link has come into it since it was looked at.
func isAt(root *os.Root, dir string) error {
	f, err := boundedfile.OpenIn(root, ".")
	if err != nil {
		return err
	}
	defer f.Close()
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err == nil && real != dir {
		err = fmt.Errorf("copy %s: it was looked at, and leads to %s since (B7): see what puts a symbolic link there, and run `workshop up` again", dir, real)
	}
	return err
}
