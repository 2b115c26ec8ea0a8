package compose

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"math"
	"strings"
	"sync"
)

// seccompFile is where the profile is, next to compose.yaml, and
// seccompOption the security_opt that names it. Engines that take a profile
// inline replace the option by Compiled.Seccomp.
const (
	seccompFile   = "seccomp.json"
	seccompOption = "seccomp:./" + seccompFile
)

// seccompSyscalls lists what is allowed whatever the arguments.
//
//go:embed seccomp_syscalls.txt
var seccompSyscalls string

// The JSON form that Docker and Podman read (moby/profiles/seccomp: Seccomp).
type (
	seccompProfile struct {
		DefaultAction   string        `json:"defaultAction"`
		DefaultErrnoRet int           `json:"defaultErrnoRet"`
		ArchMap         []seccompArch `json:"archMap"`
		Syscalls        []seccompRule `json:"syscalls"`
	}
	seccompArch struct {
		Architecture     string   `json:"architecture"`
		SubArchitectures []string `json:"subArchitectures"`
	}
	seccompRule struct {
		Names    []string         `json:"names"`
		Action   string           `json:"action"`
		ErrnoRet int              `json:"errnoRet,omitempty"`
		Args     []seccompArg     `json:"args,omitempty"`
		Includes *seccompIncludes `json:"includes,omitempty"`
	}
	seccompArg struct {
		Index    uint   `json:"index"`
		Value    uint64 `json:"value"`
		ValueTwo uint64 `json:"valueTwo"`
		Op       string `json:"op"`
	}
	seccompIncludes struct {
		Arches    []string `json:"arches,omitempty"`
		MinKernel string   `json:"minKernel,omitempty"`
	}
)

const (
	actAllow = "SCMP_ACT_ALLOW"
	actErrno = "SCMP_ACT_ERRNO"

	eperm  = 1  // errno.h
	enosys = 38 // errno.h

	// cloneNewNamespaces are all CLONE_NEW* bits of clone(2).
	cloneNewNamespaces = 0x7E020000
)

// socketFamilies are the allowed first arguments of socket(2), as value and
// number of zero bits at the end that may have any value: all families that
// Docker's profile allows but AF_PACKET (17), AF_ALG (38) and AF_VSOCK (40).
//
// Docker's own form `> 40` would also match 1<<32|40, of which the kernel
// takes the low 32 bits: AF_VSOCK. Comparing all 64 bits for equality under a
// mask leaves no such way round. Several conditions on one argument would be
// joined by OR (runc), so each range is a rule.
var socketFamilies = []struct{ value, freeBits uint64 }{
	{0, 4}, {16, 0}, {18, 1}, {20, 2}, {24, 3}, {32, 2}, {36, 1}, {39, 0}, {41, 0}, {42, 1}, {44, 1},
}

// fcntlCommands are the allowed second arguments of fcntl(2), in the same form:
// all up to F_GETDELEG (1039) but F_SETLEASE (1024). With a lease on a file, or
// a delegation (F_SETDELEG, 1040), another process that opens it waits up to 45 seconds
// for the holder (/proc/sys/fs/lease-break-time): a worker could so hold up
// programs of the host by any file of its uid that it sees, also read-only.
// The kernel takes the low 32 bits.
var fcntlCommands = []struct{ value, freeBits uint64 }{{0, 10}, {1025, 0}, {1026, 1}, {1028, 2}, {1032, 3}}

// personalities are the allowed arguments of personality(2): Linux, Linux32,
// both with UNAME26, and the question (0xffffffff).
var personalities = []uint64{0x0, 0x0008, 0x20000, 0x20008, 0xffffffff}

// callerOnly are calls that set the priority, scheduling or limits of a process, with
// their arguments that mean the caller itself. A process may change those of every
// other one of its uid: so a worker could keep PID 1 and sessions from running.
// sched_setaffinity isn't here: C libraries pass it a thread's ID (pthread_setaffinity_np(3)),
// and on one busy processor PID 1 still gets its share.
var callerOnly = []struct {
	names []string
	args  []uint64 // the first ones; of each the kernel takes the low 32 bits
}{
	{[]string{"prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler"}, []uint64{0}},
	{[]string{"setpriority"}, []uint64{0, 0}}, // PRIO_PROCESS
	{[]string{"ioprio_set"}, []uint64{1, 0}},  // IOPRIO_WHO_PROCESS
}

// SeccompProfile returns the profile of all services: Docker's default as it
// is for a process without capabilities and for the native architecture alone
// (a foreign-architecture call is refused; a container starts and executes
// faster), with AF_PACKET, AF_ALG and AF_VSOCK sockets, leases of files, and
// priorities and limits of other processes denied. Engines choose
// the architecture by archMap, so that the bytes are the same on amd64 and
// arm64. The result must not be changed.
func SeccompProfile() []byte { return seccompBytes() }

var seccompBytes = sync.OnceValue(func() []byte {
	allow := func(args []seccompArg, in *seccompIncludes, names ...string) seccompRule {
		return seccompRule{Names: names, Action: actAllow, Args: args, Includes: in}
	}
	p := seccompProfile{
		DefaultAction:   actErrno,
		DefaultErrnoRet: eperm,
		ArchMap: []seccompArch{
			{Architecture: "SCMP_ARCH_X86_64", SubArchitectures: []string{}},
			{Architecture: "SCMP_ARCH_AARCH64", SubArchitectures: []string{}},
		},
		Syscalls: []seccompRule{
			allow(nil, nil, seccompNames()...),
			// Before 4.8 a tracer could change a call after the filter saw it.
			allow(nil, &seccompIncludes{MinKernel: "4.8"}, "process_vm_readv", "process_vm_writev", "ptrace"),
		},
	}
	for _, f := range socketFamilies {
		mask := ^uint64(0) << f.freeBits
		p.Syscalls = append(p.Syscalls, allow([]seccompArg{{Index: 0, Value: mask, ValueTwo: f.value, Op: "SCMP_CMP_MASKED_EQ"}}, nil, "socket"))
	}
	for _, c := range fcntlCommands {
		mask := uint64(math.MaxUint32) << c.freeBits & math.MaxUint32
		p.Syscalls = append(p.Syscalls, allow([]seccompArg{{Index: 1, Value: mask, ValueTwo: c.value, Op: "SCMP_CMP_MASKED_EQ"}}, nil, "fcntl", "fcntl64"))
	}
	for _, c := range callerOnly {
		var args []seccompArg
		for i, v := range c.args {
			args = append(args, seccompArg{Index: uint(i), Value: math.MaxUint32, ValueTwo: v, Op: "SCMP_CMP_MASKED_EQ"})
		}
		p.Syscalls = append(p.Syscalls, allow(args, nil, c.names...))
	}
	// Without new limits prlimit64 asks for those that a process has.
	p.Syscalls = append(p.Syscalls, allow([]seccompArg{{Index: 2, Value: 0, Op: "SCMP_CMP_EQ"}}, nil, "prlimit64"))
	for _, v := range personalities {
		p.Syscalls = append(p.Syscalls, allow([]seccompArg{{Index: 0, Value: v, Op: "SCMP_CMP_EQ"}}, nil, "personality"))
	}
	p.Syscalls = append(p.Syscalls,
		allow(nil, &seccompIncludes{Arches: []string{"arm64"}},
			"arm_fadvise64_64", "arm_sync_file_range", "breakpoint", "cacheflush", "set_tls", "sync_file_range2"),
		allow(nil, &seccompIncludes{Arches: []string{"amd64"}}, "arch_prctl", "modify_ldt"),
		allow([]seccompArg{{Index: 0, Value: cloneNewNamespaces, Op: "SCMP_CMP_MASKED_EQ"}}, nil, "clone"),
		// clone3 keeps its flags behind a pointer, out of the filter's sight.
		// ENOSYS, not EPERM: C libraries then fall back to clone.
		seccompRule{Names: []string{"clone3"}, Action: actErrno, ErrnoRet: enosys},
	)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	if err := e.Encode(p); err != nil {
		panic(err) // plain data
	}
	return b.Bytes()
})

// seccompNames parses the embedded list.
func seccompNames() []string {
	var names []string
	for line := range strings.Lines(seccompSyscalls) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.Fields(line)...)
		}
	}
	return names
}
