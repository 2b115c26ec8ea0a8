package copytree

import (
	"fmt"
	"os"
	"strconv"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// isAt refuses an opened directory whose path isn't dir: dir has got a symbolic link
// since it was checked.
func isAt(root *os.Root, dir string) error {
	f, err := boundedfile.OpenIn(root, ".")
	if err != nil {
		return err
	}
	defer f.Close()
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err == nil && real != dir {
		err = fmt.Errorf("copy %s: it was checked before and now leads to %s (B7): find out what puts a symbolic link there, and run `workshop up` again", dir, real)
	}
	return err
}
