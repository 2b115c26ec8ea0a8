package namespace

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

// security accepts only the options that every container has on this engine (B2).
func (t *translation) security() error {
	var noNew, seccomp bool
	for _, opt := range t.s.SecurityOpt {
		key, value, ok := strings.Cut(opt, "=")
		if !ok {
			key, value, _ = strings.Cut(opt, ":")
		}
		switch {
		case key == "no-new-privileges" && (value == "" || value == "true"):
			noNew = true
		case key == "seccomp" && value != "" && value != "unconfined":
			seccomp = true
		default:
			return fmt.Errorf("the namespace engine does not support security_opt %q", opt)
		}
	}
	switch {
	case !noNew:
		return fmt.Errorf("it may gain privileges: security_opt has no no-new-privileges (B2)")
	case !seccomp || len(t.c.Seccomp) == 0 || len(t.m.filter) == 0:
		return fmt.Errorf("the project has no seccomp profile for it (B2)")
	}
	switch t.s.Ipc {
	case "", "private":
		return nil
	}
	return fmt.Errorf("ipc %q: every container has its own namespace (B6)", t.s.Ipc)
}

func (t *translation) capabilities() error {
	if !slices.Contains(t.s.CapDrop, "ALL") || len(t.s.CapDrop) != 1 {
		return fmt.Errorf("cap_drop %v: all must be dropped (B1)", t.s.CapDrop)
	}
	if len(t.s.CapAdd) > 0 && t.role != spec.Room {
		return fmt.Errorf("cap_add %v: only a room has capabilities (B1)", t.s.CapAdd)
	}
	for _, name := range t.s.CapAdd {
		t.out.Capabilities = append(t.out.Capabilities, "CAP_"+strings.TrimPrefix(strings.ToUpper(name), "CAP_"))
	}
	slices.Sort(t.out.Capabilities)
	return nil
}

// dockerShm is the size of /dev/shm if the project sets none, as in Docker.
const dockerShm = 64 << 20

func (t *translation) limits() error {
	l := &t.out.Limits
	l.Memory, l.PIDs, l.Unlimited = int64(t.s.MemLimit), t.s.PidsLimit, t.m.unlimited
	// The shortest decimal: 0.1 is 0.1, not the nearest of 32 bits.
	l.CPUs, _ = strconv.ParseFloat(strconv.FormatFloat(float64(t.s.CPUS), 'f', -1, 32), 64)
	l.Shm = int64(t.s.ShmSize)
	if l.Shm == 0 {
		l.Shm = dockerShm
	}
	switch {
	case l.Memory <= 0 || l.PIDs <= 0 || !(l.CPUs > 0) || math.IsInf(l.CPUs, 0):
		return fmt.Errorf("it has no limit of memory, cpus or pids (B5)")
	case int64(t.s.MemSwapLimit) != l.Memory:
		return fmt.Errorf("memswap_limit %d differs from mem_limit: swap is not supported (B5)", int64(t.s.MemSwapLimit))
	case l.Shm < 0:
		return fmt.Errorf("shm_size %d is negative", l.Shm)
	}
	return nil
}

func (t *translation) rlimits() error {
	for _, name := range sortedKeys(t.s.Ulimits) {
		u := *t.s.Ulimits[name]
		r := spec.Rlimit{Name: name}
		if u.Single != 0 {
			u.Soft, u.Hard = u.Single, u.Single
		}
		if u.Soft < 0 || u.Hard < 0 || u.Soft > u.Hard {
			return fmt.Errorf("ulimit %s: the soft limit %d is not valid with the hard limit %d", name, u.Soft, u.Hard)
		}
		r.Soft, r.Hard = uint64(u.Soft), uint64(u.Hard)
		if name == "nofile" && t.m.files > 0 && r.Hard > t.m.files {
			return &engine.RefusedError{
				Reason: fmt.Sprintf("%s needs %d open files, but this user may have %d", t.name, r.Hard, t.m.files),
				Do:     fmt.Sprintf("raise the hard limit (`ulimit -Hn`; limits.conf(5): `%d hard nofile %d`, or LimitNOFILE= of the service that you run in)", t.m.uid, r.Hard),
			}
		}
		t.out.Rlimits = append(t.out.Rlimits, r)
	}
	return nil
}

// Kept output if the project sets no limits.
const (
	logSize  = 10 << 20
	logFiles = 3
)

func (t *translation) log() error {
	t.out.Log = spec.Log{MaxSize: logSize, MaxFiles: logFiles}
	if t.s.Logging == nil {
		return nil
	}
	if d := t.s.Logging.Driver; d != "" && d != "json-file" {
		return fmt.Errorf("the namespace engine does not support the logging driver %q", d)
	}
	for _, key := range sortedKeys(t.s.Logging.Options) {
		value := t.s.Logging.Options[key]
		var err error
		switch key {
		case "max-size":
			t.out.Log.MaxSize, err = units.RAMInBytes(value) // 1024s, as Docker's log driver
		case "max-file":
			t.out.Log.MaxFiles, err = strconv.Atoi(value)
		default:
			return fmt.Errorf("the namespace engine does not support the logging option %q", key)
		}
		if err != nil || t.out.Log.MaxSize <= 0 || t.out.Log.MaxFiles <= 0 {
			return fmt.Errorf("logging option %s: %q is not valid", key, value)
		}
	}
	return nil
}
