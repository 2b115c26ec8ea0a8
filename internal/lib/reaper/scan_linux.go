package reaper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Info is the content of /proc/PID/stat (proc_pid_stat(5)).
type Info struct {
	Pid, Parent, Group, Session int
	State                       byte // R, S, D, T, Z …
	Threads                     int
	Start                       uint64 // clock ticks since the machine's start
}

// Ended reports whether a process is a zombie. A process whose first thread has ended
// looks the same while others run.
func (i Info) Ended() bool { return (i.State == 'Z' || i.State == 'X') && i.Threads <= 1 }

// Scan lists the visible processes. After an error there may be others.
func Scan() ([]Info, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		i, err := look(name)
		switch err {
		case nil:
			list = append(list, i)
		case unix.EMFILE, unix.ENFILE, unix.ENOMEM: // an incomplete list
			return list, err
		}
	}
	return list, nil
}

// Look returns the Info of one process; name is its PID or "self".
func Look(name string) (Info, bool) {
	i, err := look(name)
	return i, err == nil
}

func look(name string) (Info, error) {
	fd, err := unix.Open("/proc/"+name+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Info{}, err
	}
	defer unix.Close(fd)
	var buf [1024]byte // at most 52 numbers
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return Info{}, err
	}
	i, ok := parseStat(buf[:n])
	if !ok {
		return Info{}, unix.ESRCH
	}
	return i, nil
}

// parseStat reads one line of stat. The name of the program, in parentheses,
// may hold spaces and parentheses.
func parseStat(b []byte) (Info, bool) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Info{}, false
	}
	var i Info
	var err error
	if i.Pid, err = strconv.Atoi(string(bytes.TrimSpace(b[:open]))); err != nil {
		return Info{}, false
	}
	// Numbers of fields as in the manual, less the two before.
	const state, parent, group, session, threads, start = 0, 1, 2, 3, 17, 19
	fields := bytes.Fields(b[end+1:])
	if len(fields) <= start || len(fields[state]) != 1 {
		return Info{}, false
	}
	i.State = fields[state][0]
	for at, to := range map[int]*int{parent: &i.Parent, group: &i.Group, session: &i.Session, threads: &i.Threads} {
		if *to, err = strconv.Atoi(string(fields[at])); err != nil {
			return Info{}, false
		}
	}
	i.Start, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return i, err == nil
}

// Descendants picks, of a list, the processes below one, children of children
// included.
func Descendants(list []Info, of int) []Info {
	children := map[int][]Info{}
	for _, i := range list {
		children[i.Parent] = append(children[i.Parent], i)
	}
	var below []Info
	for todo := []int{of}; len(todo) > 0; {
		next := children[todo[0]]
		delete(children, todo[0]) // a list isn't atomic: don't loop on a cycle
		todo = todo[1:]
		for _, i := range next {
			below = append(below, i)
			todo = append(todo, i.Pid)
		}
	}
	return below
}
