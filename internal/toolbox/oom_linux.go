package toolbox

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/protocol"
)

// childScore is added to the badness of what is started, so that at the
// worker's memory limit the kernel ends it rather than the session or PID 1
// (proc_pid_oom_score_adj(5)).
const childScore = "500"

// A program whose execution is told isn't its user's yet for a moment (begin_new_exec of
// fs/exec.c closes descriptors first). With one processor this process looks then, each time.
func preferForOOM(p *reaper.Process) {
	for _, wait := range []time.Duration{200 * time.Microsecond, 2 * time.Millisecond, 0} {
		err := p.While(func() error {
			fd, err := unix.Open("/proc/"+strconv.Itoa(p.Pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err // has ended, or can't be looked into: the default then
			}
			defer unix.Close(fd)
			_, err = unix.Write(fd, []byte(childScore))
			return err
		})
		if err != unix.EACCES {
			return
		}
		time.Sleep(wait)
	}
}

// oomFiles: control groups version 2 and 1. Their lines are "oom_kill N".
var oomFiles = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}

// memoryNote says what of the worker's memory may be why a command failed, by its exit
// code, the [session.oomKills] when it was started and whether it may have said ENOSPC;
// empty: nothing. What a command started may be killed though it succeeds.
func (s *session) memoryNote(code int, kills int64, noSpace bool) string {
	killed := kills >= 0 && s.oomKills() > kills
	switch {
	case killed && code == 128+int(unix.SIGKILL):
		return noteOOM("OOM-killed, probably")
	case killed:
		return noteOOM("a process was OOM-killed while the command ran")
	case code == 0 || s.view != nil: // without a container, the memory is the machine's
		return ""
	case noSpace:
		return noteFull()
	}
	return ""
}

// noteOOM is what a command is told of what was killed: files in memory count, and
// nothing ends them with the command.
func noteOOM(what string) string {
	var held []string
	memoryFiles(func(dir string, fs unix.Statfs_t) {
		if size := (fs.Blocks - fs.Bfree) * uint64(fs.Bsize); size >= 8<<20 {
			held = append(held, protocol.HeldNote(dir, size))
		}
	})
	note := what + ": the worker's memory was used up"
	if len(held) > 0 {
		note += "; of it, " + strings.Join(held, ", ")
	}
	return note
}

// noteFull names the memory file systems that are full.
func noteFull() string {
	var full []string
	memoryFiles(func(dir string, fs unix.Statfs_t) {
		if fs.Blocks > 0 && fs.Bavail == 0 || fs.Files > 0 && fs.Ffree == 0 {
			full = append(full, protocol.FullNote(dir, fs.Blocks*uint64(fs.Bsize)))
		}
	})
	return strings.Join(full, ", ")
}

// memoryFiles looks at the worker's memory file systems.
func memoryFiles(look func(dir string, fs unix.Statfs_t)) {
	for _, dir := range protocol.FileMemory {
		var fs unix.Statfs_t
		if unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
			look(dir, fs)
		}
	}
}
