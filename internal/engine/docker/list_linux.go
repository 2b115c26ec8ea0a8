package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/cgroup"
)

// groups are the directories below which the engine makes the control groups of
// containers: those of its drivers cgroupfs and systemd, on v2 and v1, of root and of
// a user (docs.docker.com, runtime metrics).
type groups struct {
	dirs []string
	boot time.Time
}

func groupsHere() groups {
	g := groups{}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/memory"} {
		g.dirs = append(g.dirs, root+"/docker/", root+"/system.slice/docker-", root+"/user.slice/user-"+strconv.Itoa(os.Getuid())+".slice/user@"+strconv.Itoa(os.Getuid())+".service/user.slice/docker-")
	}
	var seconds float64
	if b, err := boundedfile.Read("/proc/uptime", 128); err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		seconds, _ = strconv.ParseFloat(first, 64)
	}
	g.boot = time.Now().Add(-time.Duration(seconds * float64(time.Second)))
	return g
}

// look returns the memory that a container uses, and the start of its first process;
// false if this kernel doesn't run it.
func (g groups) look(id string) (memory int64, started time.Time, ok bool) {
	for _, dir := range g.dirs {
		dir += id
		if filepath.Base(dir) != id {
			dir += ".scope"
		}
		n, found := cgroup.MemoryUsage(dir)
		if !found {
			continue
		}
		b, _ := boundedfile.Read(dir+"/cgroup.procs", 1<<20)
		for pid := range strings.FieldsSeq(string(b)) {
			if at, ok := g.start(pid); ok && (started.IsZero() || at.Before(started)) {
				started = at
			}
		}
		return n, started, !started.IsZero()
	}
	return 0, time.Time{}, false
}

// ticks is the unit of times in /proc/PID/stat per second: 100 on every architecture
// that the kernel shows to programs (USER_HZ).
const ticks = 100

// start returns when a process started (proc_pid_stat(5), field 22).
func (g groups) start(pid string) (time.Time, bool) {
	b, err := boundedfile.Read("/proc/"+pid+"/stat", 4<<10)
	if err != nil {
		return time.Time{}, false
	}
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // from field 3 on
	if len(fields) < 20 {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(fields[19], 10, 64)
	return g.boot.Add(time.Duration(n) * time.Second / ticks), err == nil
}
