package compose

import (
	"strconv"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/workerinit/pid1"
	"github.com/llmdo/workshop/workshop"
)

// workerUlimits are the limits of setrlimit(2) that each worker has, soft and hard.
var workerUlimits = map[string]int{"nofile": pid1.Files, "sigpending": pid1.Signals}

// limits sets what a worker may use (B5). Swap equal to memory means no swap
// beyond it.
func (c *compiler) limits(s *types.ServiceConfig, k *workshop.Container) {
	r := &k.Resources
	s.MemLimit = types.UnitBytes(r.Memory.V)
	s.MemSwapLimit = s.MemLimit
	s.CPUS = float32(r.CPU.V)
	s.PidsLimit = r.PIDs.V
	s.ShmSize = types.UnitBytes(k.Shm.V)
	s.Ulimits = map[string]*types.UlimitsConfig{}
	for name, n := range workerUlimits {
		s.Ulimits[name] = &types.UlimitsConfig{Soft: n, Hard: n}
	}
	c.origin(s.Name, "mem_limit", r.Memory.Source)
	c.origin(s.Name, "memswap_limit", r.Memory.Source)
	c.origin(s.Name, "cpus", r.CPU.Source)
	c.origin(s.Name, "pids_limit", r.PIDs.Source)
	c.origin(s.Name, "shm_size", k.Shm.Source)
}

// tmpfs sets the writable directories that every worker has (B3). They are
// for everybody, because the uid is not known before `up`, and programs may be
// executed from them: a worker builds and runs things.
func (c *compiler) tmpfs(s *types.ServiceConfig, k *workshop.Container) {
	for _, t := range []struct {
		dir  string
		size workshop.Value[workshop.Size]
	}{{"/tmp", k.Tmp}, {scratchDir, k.Scratch}, {homeDir, k.Home}} {
		const after = ",mode=1777"
		before := t.dir + ":rw,exec,nosuid,nodev,size="
		s.Tmpfs = append(s.Tmpfs, before+formatSize(int64(t.size.V))+after)
		c.origin(s.Name, "tmpfs."+t.dir, around(before, t.size.Source, after))
	}
}

// ownedTmpfs makes the owner of each tmpfs the worker's user. The mode alone is not
// enough: where the image has the directory, runc gives the mount that one's
// mode (libcontainer/rootfs_linux.go), and an image's /home/worker is 0755.
func ownedTmpfs(all []string, user string) []string {
	uid, gid, ok := ids(user)
	if !ok {
		return nil
	}
	out := make([]string, len(all))
	for i, t := range all {
		out[i] = t + ",uid=" + strconv.Itoa(uid) + ",gid=" + strconv.Itoa(gid)
	}
	return out
}

// formatSize writes a number of bytes with the largest unit that divides it:
// Compose, Docker and the kernel read k, m and g alike.
func formatSize(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "g"}, {20, "m"}, {10, "k"}} {
		if n > 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
