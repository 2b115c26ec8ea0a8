//go:build !unix

package procgroup

import "os/exec"

// Own does nothing: there are no process groups.
func Own(*exec.Cmd) {}
