package procgroup

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Detach makes a program one that goes on when the caller ends, without a console.
func Detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
