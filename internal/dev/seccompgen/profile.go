package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// profile is Docker's form (moby/profiles/seccomp: Seccomp). What isn't here is
// an error: a condition that is overlooked opens something.
type profile struct {
	DefaultAction   string    `json:"defaultAction"`
	DefaultErrnoRet *uint16   `json:"defaultErrnoRet"`
	ArchMap         []archMap `json:"archMap"`
	Syscalls        []rule    `json:"syscalls"`
}

type archMap struct {
	Architecture     string   `json:"architecture"`
	SubArchitectures []string `json:"subArchitectures"`
}

type rule struct {
	Names    []string  `json:"names"`
	Action   string    `json:"action"`
	ErrnoRet *uint16   `json:"errnoRet"`
	Args     []arg     `json:"args"`
	Includes *includes `json:"includes"`
}

// arg is a condition on one argument; all of a rule must hold.
type arg struct {
	Index    uint   `json:"index"`
	Value    uint64 `json:"value"`
	ValueTwo uint64 `json:"valueTwo"`
	Op       string `json:"op"`
}

// includes: the rule counts only there.
type includes struct {
	Arches    []string `json:"arches"`
	MinKernel string   `json:"minKernel"`
}

func parseProfile(b []byte) (*profile, error) {
	var p profile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return nil, fmt.Errorf("the seccomp profile can't be read: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("the seccomp profile can't be read: something follows it")
	}
	return &p, nil
}

// Answers of a filter (linux/seccomp.h).
const (
	retKillProcess = 0x80000000
	retErrno       = 0x00050000
	retAllow       = 0x7fff0000

	eperm  = 1
	enosys = 38

	maxErrno = 4095
)

// answer is what the filter returns for an action.
func answer(action string, errno *uint16) (uint32, error) {
	if errno != nil && *errno > maxErrno {
		return 0, fmt.Errorf("the errno %d is above %d", *errno, maxErrno)
	}
	switch action {
	case "SCMP_ACT_ALLOW":
		return retAllow, nil
	case "SCMP_ACT_KILL_PROCESS":
		return retKillProcess, nil
	case "SCMP_ACT_ERRNO":
		if errno == nil {
			return retErrno | eperm, nil
		}
		return retErrno | uint32(*errno), nil
	}
	return 0, fmt.Errorf("the action %q is unknown", action)
}

// oldestKernel is the oldest that the namespace engine runs on (docs/engines.md).
var oldestKernel = version{5, 12}

// counts reports whether a rule counts on this architecture. One that would depend
// on the kernel is an error: a filter is made once for all.
func (i *includes) counts(arch string) (bool, error) {
	if i == nil {
		return true, nil
	}
	if i.MinKernel != "" {
		if minimum, err := parseVersion(i.MinKernel); err != nil {
			return false, err
		} else if oldestKernel.less(minimum) {
			return false, fmt.Errorf("it depends on the kernel: %s is newer than %d.%d", i.MinKernel, oldestKernel.major, oldestKernel.minor)
		}
	}
	return len(i.Arches) == 0 || slices.Contains(i.Arches, arch), nil
}

// version of a kernel: its first two numbers, as Docker compares them.
type version struct{ major, minor int }

func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion reads "6.18.44-generic", "4.8" or "5.10+".
func parseVersion(s string) (version, error) {
	major, rest, ok := strings.Cut(s, ".")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(rest[:digits])
	if !ok || err1 != nil || err2 != nil || a < 0 {
		return version{}, fmt.Errorf("%q is not a version of a kernel", s)
	}
	return version{a, b}, nil
}
