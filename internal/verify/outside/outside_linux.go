// Package outside reads what the kernel shows of a container's processes on this
// machine, without entering it. Files of /proc are the kernel's, but names and arguments
// in them are the processes' own.
package outside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/fileowner"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/verify"
)

// maxFile bounds what is read of a file, maxBelow how many processes below one are looked at.
const (
	maxFile  = 1 << 20
	maxBelow = 256
	// maxMembers is how many processes of a control group are looked at.
	maxMembers = 4096
)

// fields of /proc/PID/status that are kept.
var fields = []string{
	"Name", "Pid", "PPid", "Uid", "Gid", "Groups", "NSpid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
}

// namespaces are compared with our own.
var namespaces = []string{"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}

// Look reads what the kernel shows of a process. It is an error if there is none of this
// PID or, unless it is sure that the PID is one of this machine, if it isn't PID 1 of a
// namespace below ours: an engine elsewhere counts differently.
func Look(pid int, sure bool) (*verify.Process, error) {
	dir, err := open(pid)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	p := &verify.Process{Unread: map[string]string{}, Namespaces: map[string]string{}, Here: map[string]string{}, Limits: map[string]string{}}
	if p.Status, err = status(dir); err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	if ns := strings.Fields(p.Status["NSpid"]); !sure && (len(ns) < 2 || ns[len(ns)-1] != "1") {
		return nil, fmt.Errorf("process %d of this machine is another one: the engine is in a namespace or machine of its own", pid)
	}
	p.Args = strings.Split(strings.TrimRight(read(dir, "cmdline"), "\x00"), "\x00")
	p.Status["tty"] = terminal(read(dir, "stat"))
	p.Below = below(pid)
	limits(p, read(dir, "limits"))
	if g, err := cgroup.EnforcedOn(pid); err != nil {
		p.Unread["groups"] = err.Error()
	} else {
		p.Groups = &g
	}
	if text, err := readAll(dir, "mountinfo"); err != nil {
		p.Unread["mounts"] = err.Error()
	} else {
		p.Mounts = procinfo.Reachable(procinfo.Mounts(text))
	}
	if text, err := readAll(dir, "net/dev"); err != nil {
		p.Unread["interfaces"] = err.Error()
	} else {
		p.Interfaces = procinfo.Interfaces(text)
	}
	p.Network = read(dir, "net/fib_trie") + read(dir, "net/if_inet6")
	spaces(p, dir)
	devices(p, pid)
	p.Owner = -1
	if info, err := dir.Lstat("fd"); err == nil {
		p.Owner, _, _ = fileowner.Of(info)
	}
	return p, nil
}

// Files finds the process that opens files for a kernel in user space, of which this is the
// main process: gVisor's gofer. The runtime starts both, each as PID 1 of a namespace of its own,
// in the container's control groups; whoever starts them has no other such child there.
func Files(pid int) (*verify.Process, error) {
	main, err := Look(pid, false)
	if err != nil {
		return nil, err
	}
	all, err := cgroup.Members(pid)
	if err != nil {
		return nil, err
	}
	var found *verify.Process
	for _, n := range all[:min(len(all), maxMembers)] {
		if n == pid {
			continue
		}
		p, err := Look(n, false)
		if err != nil || p.Status["PPid"] != main.Status["PPid"] || p.Namespaces["pid"] == main.Namespaces["pid"] && p.Namespaces["pid"] != "" {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("processes %s and %s could be it", found.Status["Pid"], p.Status["Pid"])
		}
		found = p
	}
	if found == nil {
		return nil, fmt.Errorf("none of %d processes in the control groups of process %d is it", len(all), pid)
	}
	return found, nil
}

// open opens the directory of a process: what is read by it is of that one, whoever has
// the PID later.
func open(pid int) (*os.Root, error) {
	dir, err := os.OpenRoot("/proc/" + strconv.Itoa(pid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("/proc has no process %d: the engine is elsewhere, or /proc hides processes (hidepid)", pid)
	}
	return dir, err
}

func readAll(dir *os.Root, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile))
	return string(b), err
}

func read(dir *os.Root, name string) string {
	text, _ := readAll(dir, name)
	return text
}

func status(dir *os.Root) (map[string]string, error) {
	text, err := readAll(dir, "status")
	if err != nil {
		return nil, err
	}
	return procinfo.Status(text, fields), nil
}

// terminal is tty_nr of /proc/PID/stat, the fifth field after the name.
func terminal(stat string) string {
	f := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(f) < 5 {
		return ""
	}
	return f[4]
}

// below are the statuses of the processes that a process has started, as far as the
// kernel lists children.
func below(pid int) (all []map[string]string) {
	queue := []int{pid}
	for len(queue) > 0 && len(all) < maxBelow {
		now := queue[0]
		queue = queue[1:]
		dir, err := open(now)
		if err != nil {
			continue
		}
		if now != pid {
			if s, err := status(dir); err == nil && s["CapEff"] != "" {
				all = append(all, s)
			}
		}
		threads, _ := fs.ReadDir(dir.FS(), "task")
		for _, t := range threads[:min(len(threads), maxBelow)] {
			for child := range strings.FieldsSeq(read(dir, "task/"+t.Name()+"/children")) {
				if n, err := strconv.Atoi(child); err == nil {
					queue = append(queue, n)
				}
			}
		}
		dir.Close()
	}
	return all
}

// limits reads the soft limits: columns have fixed widths.
func limits(p *verify.Process, text string) {
	for line := range strings.Lines(text) {
		if len(line) > 26 {
			if f := strings.Fields(line[26:]); len(f) > 0 {
				p.Limits[strings.TrimSpace(line[:26])] = f[0]
			}
		}
	}
	if len(p.Limits) == 0 {
		p.Unread["limits"] = "its limits can't be read"
	}
}

func spaces(p *verify.Process, dir *os.Root) {
	for _, kind := range namespaces {
		p.Here[kind], _ = os.Readlink("/proc/self/ns/" + kind)
		is, err := dir.Readlink("ns/" + kind)
		if err != nil {
			p.Unread["namespaces"] = "its namespaces can't be read: " + plain(err)
			continue
		}
		p.Namespaces[kind] = is
	}
}

// devices lists the device nodes in /dev of a process. A node may be bound over a file,
// so an entry's own type tells nothing.
func devices(p *verify.Process, pid int) {
	path := fmt.Sprintf("/proc/%d/root/dev", pid)
	all, err := os.ReadDir(path)
	if err != nil {
		p.Unread["devices"] = "its /dev can't be read: " + plain(err)
		return
	}
	for _, e := range all[:min(len(all), 1000)] {
		if info, err := os.Lstat(path + "/" + e.Name()); err == nil && info.Mode()&os.ModeDevice != 0 {
			p.Devices = append(p.Devices, e.Name())
		}
	}
}

func plain(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Listening are the addresses at which something listens in a process's network
// namespace; "self" is our own.
func Listening(process string) (out []string, err error) {
	for _, file := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/" + process + "/net/" + file)
		if errors.Is(err, fs.ErrNotExist) && file == "tcp6" {
			continue
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" { // TCP_LISTEN
				continue
			}
			if at, ok := address(f[1]); ok {
				out = append(out, at)
			}
		}
	}
	return out, nil
}
