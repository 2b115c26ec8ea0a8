//go:build unix

package approval

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// ownGroup makes what the program starts end with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

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
