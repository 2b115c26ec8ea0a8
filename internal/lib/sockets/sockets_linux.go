package sockets

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// All returns the TCP sockets of this network namespace.
func All() (all []Socket, err error) {
	for _, file := range []string{"/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"} {
		some, err := read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // there may be no IPv6
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func read(file string) (all []Socket, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if s, ok := Parse(lines.Text()); ok {
			all = append(all, s)
		}
	}
	return all, lines.Err()
}

// Owners returns a process for each of the sockets, by their inodes, of those whose
// descriptors the caller may see.
func Owners(ctx context.Context, inodes map[uint64]bool) map[uint64]Owner {
	out := map[uint64]Owner{}
	processes, _ := filepath.Glob("/proc/[0-9]*") // of another system: none
	for _, dir := range processes {
		if ctx.Err() != nil || len(out) == len(inodes) {
			break
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		descriptors, _ := os.ReadDir(filepath.Join(dir, "fd")) // another user's: none
		for _, d := range descriptors {
			link, _ := os.Readlink(filepath.Join(dir, "fd", d.Name()))
			inode, ok := socketInode(link)
			if _, known := out[inode]; !ok || !inodes[inode] || known {
				continue
			}
			name, _ := os.ReadFile(filepath.Join(dir, "comm"))
			out[inode] = Owner{PID: pid, Program: strings.TrimSuffix(string(name), "\n")}
		}
	}
	return out
}

// socketInode reads "socket:[123]".
func socketInode(link string) (uint64, bool) {
	text, ok := strings.CutPrefix(link, "socket:[")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 64)
	return n, err == nil
}

// FirstUnprivileged returns the first port that every user of this network namespace may
// listen on.
func FirstUnprivileged() uint16 {
	b, err := os.ReadFile("/proc/sys/net/ipv4/ip_unprivileged_port_start")
	n, bad := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 16)
	if err != nil || bad != nil {
		return 1024 // the kernel's default
	}
	return uint16(n)
}
