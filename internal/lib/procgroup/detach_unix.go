//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Detach makes a program one that goes on when the caller ends, in a session of its own:
// no terminal's signals reach it.
func Detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
