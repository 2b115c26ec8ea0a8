//go:build unix

package audit

import "syscall"

// noFollow: a link in the place of the log isn't followed.
const noFollow = syscall.O_NOFOLLOW
