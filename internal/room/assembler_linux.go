package room

import "golang.org/x/sys/unix"

// assembler assembles a classic BPF program (the kernel's
// Documentation/networking/filter.rst). Jumps lead forward to labels; "yes", like the
// end, passes the packet, "no" drops it.
type assembler struct {
	code   []unix.SockFilter
	jumps  []jump
	labels map[string]int
}

// jump is a jump whose distance isn't known yet.
type jump struct {
	at    int
	label string
	field func(*unix.SockFilter) *uint8 // nil: K, of a jump without a condition
}

func ifTrue(i *unix.SockFilter) *uint8  { return &i.Jt }
func ifFalse(i *unix.SockFilter) *uint8 { return &i.Jf }

// filter returns the program that build writes.
func filter(build func(*assembler)) []unix.SockFilter {
	a := &assembler{labels: map[string]int{}}
	build(a)
	a.label("yes")
	a.emit(unix.BPF_RET|unix.BPF_K, snapshot)
	a.label("no")
	a.emit(unix.BPF_RET|unix.BPF_K, 0)
	for _, j := range a.jumps {
		d := a.labels[j.label] - j.at - 1
		if j.field == nil {
			a.code[j.at].K = uint32(d)
		} else {
			*j.field(&a.code[j.at]) = uint8(d)
		}
	}
	return a.code
}

func (a *assembler) label(name string) { a.labels[name] = len(a.code) }

func (a *assembler) emit(code uint16, k uint32) {
	a.code = append(a.code, unix.SockFilter{Code: code, K: k})
}

func (a *assembler) to(label string, field func(*unix.SockFilter) *uint8) {
	a.jumps = append(a.jumps, jump{len(a.code) - 1, label, field})
}

// Loads of a byte, or of two or four in network order, at an offset of the packet;
// those with X at an offset from the end of the IPv4 header.
func (a *assembler) load8(at uint32)   { a.emit(unix.BPF_LD|unix.BPF_B|unix.BPF_ABS, at) }
func (a *assembler) load16(at uint32)  { a.emit(unix.BPF_LD|unix.BPF_H|unix.BPF_ABS, at) }
func (a *assembler) load32(at uint32)  { a.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }
func (a *assembler) loadX8(at uint32)  { a.emit(unix.BPF_LD|unix.BPF_B|unix.BPF_IND, at) }
func (a *assembler) loadX16(at uint32) { a.emit(unix.BPF_LD|unix.BPF_H|unix.BPF_IND, at) }
func (a *assembler) loadX32(at uint32) { a.emit(unix.BPF_LD|unix.BPF_W|unix.BPF_IND, at) }

// headerX sets X to the length of the IPv4 header at an offset.
func (a *assembler) headerX(at uint32) { a.emit(unix.BPF_LDX|unix.BPF_B|unix.BPF_MSH, at) }

func (a *assembler) jump(label string) {
	a.emit(unix.BPF_JMP|unix.BPF_JA, 0)
	a.to(label, nil)
}

func (a *assembler) ifEqual(k uint32, label string) {
	a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
	a.to(label, ifTrue)
}

func (a *assembler) unlessEqual(k uint32, label string) {
	a.emit(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
	a.to(label, ifFalse)
}

// ifAny jumps if any of the bits is set.
func (a *assembler) ifAny(bits uint32, label string) {
	a.emit(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits)
	a.to(label, ifTrue)
}

// unlessLoopback jumps if the IPv6 address at an offset isn't ::1.
func (a *assembler) unlessLoopback(at uint32, label string) {
	for i, want := range []uint32{0, 0, 0, 1} {
		a.load32(at + 4*uint32(i))
		a.unlessEqual(want, label)
	}
}
