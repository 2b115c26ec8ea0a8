//go:build unix

// Package procgroup ends what a program has started together with it.
package procgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Own makes what the program starts end with it, when the command's context ends.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
