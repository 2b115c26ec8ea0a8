//go:build unix

package approval

import (
	"fmt"
	"os"

	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// ownSocket wants a socket of this user: another's program could answer.
func ownSocket(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	uid, _, ok := fileowner.Of(info)
	switch {
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is not a socket", path)
	case !ok || uid != os.Getuid() && uid != 0:
		return fmt.Errorf("%s belongs to another user", path)
	}
	return nil
}
