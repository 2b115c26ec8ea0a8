package main

import (
	"fmt"
	"maps"
	"slices"
)

// instruction of a classic BPF program (linux/filter.h).
type instruction struct {
	op      uint16
	yes, no uint8
	k       uint32
}

// The operations that are used (linux/bpf_common.h).
const (
	opLoad      = 0x20 // BPF_LD|BPF_W|BPF_ABS
	opAnd       = 0x54 // BPF_ALU|BPF_AND|BPF_K
	opJump      = 0x05 // BPF_JMP|BPF_JA
	opJumpEqual = 0x15 // BPF_JMP|BPF_JEQ|BPF_K
	opJumpFrom  = 0x35 // BPF_JMP|BPF_JGE|BPF_K
	opReturn    = 0x06 // BPF_RET|BPF_K
)

// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bits,
// the low half first.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

const maxInstructions = 4096 // BPF_MAXINSNS

// span is a run of numbers with one answer, up to the next span's first.
type span struct {
	from uint32
	call call
}

// spans covers all numbers, in order.
func (t *table) spans() []span {
	fallback := call{always: true, answer: t.fallback}
	list := []span{{0, fallback}}
	add := func(from uint32, c call) {
		last := &list[len(list)-1]
		switch {
		case last.call.always && c.always && last.call.answer == c.answer:
		case last.from == from:
			last.call = c
			if n := len(list); n > 1 && c.always && list[n-2].call.always && list[n-2].call.answer == c.answer {
				list = list[:n-1]
			}
		default:
			list = append(list, span{from, c})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(t.calls)) {
		add(n, t.calls[n])
		add(n+1, fallback)
	}
	if t.fallback != retErrno|enosys {
		add(t.above, call{always: true, answer: retErrno | enosys})
	}
	return list
}

// assemble makes the program: the architecture first, then a binary search for
// the span, so that a call costs about eight comparisons on a kernel that
// doesn't remember the answer.
func (t *table) assemble() ([]instruction, error) {
	code := []instruction{
		{op: opLoad, k: atArch},
		{op: opJumpEqual, yes: 1, k: t.audit},
		{op: opReturn, k: retKillProcess},
		{op: opLoad, k: atNumber},
	}
	if t.x32 {
		code = append(code, instruction{op: opJumpFrom, no: 1, k: x32Bit}, instruction{op: opReturn, k: retErrno | enosys})
	}
	code = append(code, t.search(t.spans())...)
	if len(code) > maxInstructions {
		return nil, fmt.Errorf("it makes %d instructions, the kernel takes %d", len(code), maxInstructions)
	}
	return code, nil
}

func (t *table) search(list []span) []instruction {
	if len(list) == 1 {
		return t.leaf(list[0].call)
	}
	middle := len(list) / 2
	low, high := t.search(list[:middle]), t.search(list[middle:])
	var code []instruction
	if len(low) <= 255 {
		code = append(code, instruction{op: opJumpFrom, yes: uint8(len(low)), k: list[middle].from})
	} else { // a conditional jump is no longer than a byte says
		code = append(code, instruction{op: opJumpFrom, no: 1, k: list[middle].from}, instruction{op: opJump, k: uint32(len(low))})
	}
	return append(append(code, low...), high...)
}

// leaf answers for one call.
func (t *table) leaf(c call) []instruction {
	if c.always {
		return []instruction{{op: opReturn, k: c.answer}}
	}
	var code []instruction
	for _, clause := range c.clauses {
		code = append(code, clause.code()...)
	}
	return append(code, instruction{op: opReturn, k: t.fallback})
}

// code of a clause ends with its answer; where a test fails it goes on behind
// that.
func (c clause) code() []instruction {
	var code []instruction
	var fails []int // jumps that lead behind the end
	for _, t := range c.tests {
		for half := range uint32(2) {
			// The high half first: it is the one that tells most often.
			shift := 32 * (1 - half)
			mask, value := uint32(t.mask>>shift), uint32(t.value>>shift)
			if mask == 0 {
				continue
			}
			code = append(code, instruction{op: opLoad, k: atArgs + 8*uint32(t.index) + shift/8})
			if mask != ^uint32(0) {
				code = append(code, instruction{op: opAnd, k: mask})
			}
			fails = append(fails, len(code))
			code = append(code, instruction{op: opJumpEqual, k: value})
		}
	}
	code = append(code, instruction{op: opReturn, k: c.answer})
	for _, i := range fails { // at most 6 tests with 2 halves of 3
		code[i].no = uint8(len(code) - 1 - i)
	}
	return code
}
