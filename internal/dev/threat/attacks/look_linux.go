package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/probe"
)

// listening reads /proc/net: who waits for connections and datagrams here,
// whatever process, user or container it belongs to.
func listening(_ []string, opts map[string]string) (string, string) {
	above := number(opts["above"], 1<<16)
	const listen, unconnected = "0A", "07" // include/net/tcp_states.h
	found := map[string]bool{}
	for file, state := range map[string]string{"tcp": listen, "tcp6": listen, "udp": unconnected, "udp6": unconnected} {
		b, err := os.ReadFile("/proc/net/" + file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return probe.Seen(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != state {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			if err == nil && int(port) < above {
				found[fmt.Sprintf("%s:%d", strings.TrimSuffix(file, "6"), port)] = true
			}
		}
	}
	var all []string
	for name := range found {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ","), ""
}

// abstract reads /proc/net/unix: abstract names belong to the network
// namespace and are open to all who share it.
func abstract([]string, map[string]string) (string, string) {
	b, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return probe.Seen(err)
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if i := strings.Index(line, " @"); i > 0 {
			all = append(all, strings.TrimSpace(line[i+1:]))
		}
	}
	if len(all) == 0 {
		return "none", ""
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ","), ""
}

// userns runs a probe as root of a user namespace of its own, in the network
// namespace that it shares with the others.
func userns(words []string, _ map[string]string) (string, string) {
	cmd := exec.Command("/proc/self/exe", "probe", strings.Join(words, " "))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.Output()
	var r probe.Result
	if json.Unmarshal(out, &r) == nil && r.Probe != "" {
		return r.Seen, "in a user namespace: " + r.Detail
	}
	return probe.Seen(err)
}
