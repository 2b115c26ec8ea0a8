package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/bpf"

	"github.com/llmdo/workshop/compose"
)

var update = flag.Bool("update", false, "write the golden files")

func compiled(t testing.TB, profile []byte, arch string) []byte {
	t.Helper()
	b, err := compile(profile, arch)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// machine is the kernel's: it runs a filter on a call.
type machine struct{ vm *bpf.VM }

func newMachine(t testing.TB, filter []byte) machine {
	t.Helper()
	raw := disassemble(filter)
	instructions, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter isn't understood")
	}
	vm, err := bpf.NewVM(instructions)
	if err != nil {
		t.Fatal(err)
	}
	return machine{vm}
}

func disassemble(filter []byte) []bpf.RawInstruction {
	var raw []bpf.RawInstruction
	for i := 0; i < len(filter); i += 8 {
		raw = append(raw, bpf.RawInstruction{Op: binary.LittleEndian.Uint16(filter[i:]), Jt: filter[i+2], Jf: filter[i+3], K: binary.LittleEndian.Uint32(filter[i+4:])})
	}
	return raw
}

// call runs it on struct seccomp_data. The machine of x/net reads words of a
// packet, the high byte first.
func (m machine) call(t testing.TB, audit, number uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[0:], number)
	binary.BigEndian.PutUint32(data[4:], audit)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[16+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[20+8*i:], uint32(a>>32))
	}
	n, err := m.vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// plainest is the profile without any code of this package.
var plainest = sync.OnceValue(func() (p struct {
	Syscalls []struct {
		Names    []string
		Action   string
		ErrnoRet uint32
		Args     []struct {
			Index           int
			Value, ValueTwo uint64
			Op              string
		}
		Includes struct{ Arches []string }
	}
}) {
	if err := json.Unmarshal(compose.SeccompProfile(), &p); err != nil {
		panic(err)
	}
	return p
})

// meant is what a call should be answered, read from the profile's JSON in the
// plainest way.
func meant(arch string, number uint32, args [6]uint64) uint32 {
	p := plainest()
	numbers := architectures[arch].numbers()
	largest := -1
	for _, r := range p.Syscalls {
		if len(r.Includes.Arches) > 0 && !slices.Contains(r.Includes.Arches, arch) {
			continue
		}
		for _, name := range r.Names {
			n, ok := numbers[name]
			if !ok {
				continue
			}
			largest = max(largest, n)
			if uint32(n) != number {
				continue
			}
			matches := true
			for _, a := range r.Args {
				if a.Op == "SCMP_CMP_EQ" {
					matches = matches && args[a.Index] == a.Value
				} else {
					matches = matches && args[a.Index]&a.Value == a.ValueTwo
				}
			}
			switch {
			case matches && r.Action == "SCMP_ACT_ALLOW":
				return 0x7fff0000
			case matches:
				return 0x50000 | r.ErrnoRet
			}
		}
	}
	if int(number) > largest {
		return 0x50000 | 38
	}
	return 0x50000 | 1
}

// Every number, on both architectures.
func TestNumbers(t *testing.T) {
	for arch, a := range architectures {
		m := newMachine(t, compiled(t, compose.SeccompProfile(), arch))
		for n := range uint32(1100) {
			for _, args := range [][6]uint64{{}, {40, 1, 2, 3, 4, 5}, {^uint64(0), ^uint64(0)}} {
				if got, want := m.call(t, a.audit, n, args[:]...), meant(arch, n, args); got != want {
					t.Errorf("%s %d %v: %#x, want %#x", arch, n, args, got, want)
				}
			}
		}
	}
}

// Arguments of 64 bits: both halves count, where the profile says so.
func TestArguments(t *testing.T) {
	for arch, a := range architectures {
		m := newMachine(t, compiled(t, compose.SeccompProfile(), arch))
		values := []uint64{0xffffffff, 0x20008, 0x0008, 0x7E020000, 0x7E020000 << 32}
		for bit := range 64 {
			values = append(values, 1<<bit, 1<<bit-1, ^uint64(0)<<bit)
		}
		for family := range uint64(64) {
			values = append(values, family, family|1<<32, family|1<<63, family|1<<31)
		}
		allowed, refused := 0, 0
		for _, name := range []string{"socket", "personality", "clone", "clone3", "socketpair", "bpf"} {
			n := uint32(a.numbers()[name])
			for _, v := range values {
				got := m.call(t, a.audit, n, v)
				if want := meant(arch, n, [6]uint64{v}); got != want {
					t.Errorf("%s %s(%#x): %#x, want %#x", arch, name, v, got, want)
				}
				if got == retAllow {
					allowed++
				} else {
					refused++
				}
			}
		}
		if allowed < 100 || refused < 100 {
			t.Errorf("%s: %d allowed, %d refused: these values show nothing", arch, allowed, refused)
		}
	}
}

// Calls of other architectures and of x32.
func TestArchitectures(t *testing.T) {
	const i386, armOld = 0x40000003, 0x40000028
	for arch, a := range architectures {
		m := newMachine(t, compiled(t, compose.SeccompProfile(), arch))
		for other, o := range architectures {
			if other != arch && m.call(t, o.audit, 0) != retKillProcess {
				t.Errorf("%s lets %s in", arch, other)
			}
		}
		for _, other := range []uint32{i386, armOld, 0, ^uint32(0)} {
			if got := m.call(t, other, 1); got != retKillProcess {
				t.Errorf("%s answers %#x to %#x", arch, got, other)
			}
		}
		for _, n := range []uint32{0x40000000, 0x40000001, 0x40000000 + 520, 0x7fffffff, 0x80000000, 0xffffffff} {
			if got := m.call(t, a.audit, n); got != retErrno|enosys {
				t.Errorf("%s answers %#x to the number %#x", arch, got, n)
			}
		}
	}
}

// Every name of the profile is known on one of the architectures, or is one of
// 32 bits or another machine's: a wrong name would be passed over.
func TestNamesAreKnown(t *testing.T) {
	var p profile
	if err := json.Unmarshal(compose.SeccompProfile(), &p); err != nil {
		t.Fatal(err)
	}
	foreign := strings.Fields(`_llseek _newselect arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush chown32 clock_adjtime64
		clock_getres_time64 clock_gettime64 clock_nanosleep_time64 fadvise64_64 fchown32 fcntl64 fstat64 fstatat64 fstatfs64 ftruncate64
		futex_time64 getegid32 geteuid32 getgid32 getgroups32 getresgid32 getresuid32 getuid32 io_pgetevents_time64 ipc lchown32 lstat64 mmap2
		mq_timedreceive_time64 mq_timedsend_time64 ppoll_time64 pselect6_time64 recv recvmmsg_time64 riscv_hwprobe rt_sigtimedwait_time64
		sched_rr_get_interval_time64 semtimedop_time64 send sendfile64 set_tls setfsgid32 setfsuid32 setgid32 setgroups32 setregid32 setresgid32
		setresuid32 setreuid32 setuid32 sigprocmask sigreturn stat64 statfs64 sync_file_range2 timer_gettime64 timer_settime64 timerfd_gettime64
		timerfd_settime64 truncate64 ugetrlimit utimensat_time64 waitpid`)
	for _, r := range p.Syscalls {
		for _, name := range r.Names {
			_, x := amd64Numbers()[name]
			_, y := arm64Numbers()[name]
			if known := x || y; known == slices.Contains(foreign, name) {
				t.Errorf("%s: known here %v", name, known)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	const head = `{"defaultAction":"SCMP_ACT_ERRNO","archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":[]}],"syscalls":[`
	one := func(rule string) string { return head + rule + `]}` }
	good := `{"names":["read"],"action":"SCMP_ACT_ALLOW"}`
	compiled(t, []byte(one(good)), "amd64")
	for text, want := range map[string]string{
		one(good) + "{}":          "something follows",
		"":                        "can't be read",
		one(`{"names":["read"]}`): `the action "" is unknown`,
		one(""):                   "allows nothing",
		strings.Replace(one(good), "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW", 1):                                                                              "allows what it doesn't name",
		strings.Replace(one(good), "X86_64", "AARCH64", 1):                                                                                             "archMap",
		strings.Replace(one(good), `Architectures":[]`, `Architectures":["SCMP_ARCH_X86"]`, 1):                                                         "archMap",
		one(`{"names":["read"],"action":"SCMP_ACT_TRACE"}`):                                                                                            "unknown",
		one(`{"names":["read"],"action":"SCMP_ACT_ERRNO","errnoRet":4096}`):                                                                            "above 4095",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","excludes":{"caps":["CAP_SYS_ADMIN"]}}`):                                                      "excludes",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}}`):                                                      "caps",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"new"}}`):                                                             "version",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"5.13"}}`):                                                            "depends on the kernel",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":6,"value":1,"op":"SCMP_CMP_EQ"}]}`):                                          "argument 6",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_GT"}]}`):                                          "comparison",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]}`):                      "never there",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_EQ"}]}`):                             "valueTwo",
		one(`{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":0,"value":1,"op":"SCMP_CMP_EQ"},{"index":0,"value":1,"op":"SCMP_CMP_EQ"}]}`): "two conditions",
		one(good + `,{"names":["read"],"action":"SCMP_ACT_ERRNO"}`):                                                                                    "another action",
	} {
		if b, err := compile([]byte(text), "amd64"); err == nil || !strings.Contains(err.Error(), want) || b != nil {
			t.Errorf("%s: %v; want %q", text, err, want)
		}
	}
	if _, err := compile([]byte(one(good)), "riscv64"); err == nil {
		t.Error("riscv64 is accepted")
	}
}

// What the namespace engine has is what the profile makes.
func TestUpToDate(t *testing.T) {
	files, err := generated(compose.SeccompProfile())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		have, err := os.ReadFile("../../engine/namespace/seccomp/" + name)
		if err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s: %v; it is another one: run `make generate`", name, err)
		}
	}
}

// The listing shows a reader what changes.
func TestGolden(t *testing.T) {
	for arch := range architectures {
		var b strings.Builder
		for i, r := range disassemble(compiled(t, compose.SeccompProfile(), arch)) {
			fmt.Fprintf(&b, "%3d %v\n", i, r.Disassemble())
		}
		name := "testdata/" + arch + ".txt"
		if *update {
			if err := os.MkdirAll("testdata", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(want, []byte(b.String())) {
			t.Errorf("%s: %v; the filter is another one: look at it and run with -update", name, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(compose.SeccompProfile())
	f.Add([]byte(`{"defaultAction":"SCMP_ACT_ERRNO","archMap":[{"architecture":"SCMP_ARCH_X86_64"}],"syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}`))
	f.Fuzz(func(t *testing.T, profile []byte) {
		b, err := compile(profile, "amd64")
		if err != nil {
			return
		}
		m := newMachine(t, b)
		for _, n := range []uint32{0, 41, 56, 500} {
			if got := m.call(t, architectures["amd64"].audit, n, 1); got != retAllow && got&0xffff0000 != retErrno && got != retKillProcess {
				t.Errorf("%d: %#x", n, got)
			}
		}
	})
}
