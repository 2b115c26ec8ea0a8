package main

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Architectures by Go's names.
var architectures = map[string]struct {
	scmp    string // libseccomp's name
	audit   uint32 // linux/audit.h
	x32     bool   // has calls with bit 30 set
	numbers func() map[string]int
}{
	"amd64": {"SCMP_ARCH_X86_64", 0xC000003E, true, amd64Numbers},
	"arm64": {"SCMP_ARCH_AARCH64", 0xC00000B7, false, arm64Numbers},
}

const x32Bit = 0x40000000

// compile makes of a profile the filter for one architecture ("amd64", "arm64"): an
// array of struct sock_filter (linux/filter.h), little-endian as both are.
//
// It answers as with Docker's runc: names that the architecture doesn't have are
// passed over, numbers above all that the profile names get ENOSYS, so that C
// libraries fall back to older calls. Calls of another architecture end the
// process; those of x32, the kernel has none as a rule, get ENOSYS.
func compile(profile []byte, arch string) ([]byte, error) {
	p, err := parseProfile(profile)
	if err != nil {
		return nil, err
	}
	t, err := tableOf(p, arch)
	if err != nil {
		return nil, fmt.Errorf("the seccomp profile: %w", err)
	}
	code, err := t.assemble()
	if err != nil {
		return nil, fmt.Errorf("the seccomp profile: %w", err)
	}
	var b []byte
	for _, i := range code {
		b = binary.LittleEndian.AppendUint16(b, i.op)
		b = append(b, i.yes, i.no)
		b = binary.LittleEndian.AppendUint32(b, i.k)
	}
	return b, nil
}

// table says for each number what the filter answers.
type table struct {
	audit    uint32
	x32      bool
	fallback uint32          // of numbers that have no entry
	calls    map[uint32]call // by number
	above    uint32          // numbers from here on get ENOSYS
}

// call is one number's answer: always the same, or that of the first clause
// whose conditions hold, else the fallback.
type call struct {
	always  bool
	answer  uint32
	clauses []clause
}

type clause struct {
	answer uint32
	tests  []test
}

// test: the argument, under the mask, has the value.
type test struct {
	index       uint
	mask, value uint64
}

func tableOf(p *profile, arch string) (*table, error) {
	a, ok := architectures[arch]
	if !ok {
		return nil, fmt.Errorf("there is none for the architecture %q", arch)
	}
	// Sub-architectures would be let in; this filter is for one.
	if !slices.ContainsFunc(p.ArchMap, func(m archMap) bool { return m.Architecture == a.scmp && len(m.SubArchitectures) == 0 }) {
		return nil, fmt.Errorf("archMap doesn't have %s alone", a.scmp)
	}
	t := &table{audit: a.audit, x32: a.x32, calls: map[uint32]call{}}
	var err error
	if t.fallback, err = answer(p.DefaultAction, p.DefaultErrnoRet); err != nil {
		return nil, err
	}
	if t.fallback == retAllow {
		return nil, fmt.Errorf("it allows what it doesn't name")
	}
	numbers := a.numbers()
	for _, r := range p.Syscalls {
		if err := t.add(&r, arch, numbers); err != nil {
			return nil, fmt.Errorf("the rule of %q: %w", r.Names, err)
		}
	}
	if len(t.calls) == 0 {
		return nil, fmt.Errorf("it allows nothing")
	}
	return t, nil
}

func (t *table) add(r *rule, arch string, numbers map[string]int) error {
	to, err := answer(r.Action, r.ErrnoRet)
	if err != nil {
		return err
	}
	tests, err := testsOf(r.Args)
	if err != nil {
		return err
	}
	if counts, err := r.Includes.counts(arch); !counts || err != nil {
		return err
	}
	for _, name := range r.Names {
		n, ok := numbers[name]
		if !ok {
			continue
		}
		number := uint32(n)
		t.above = max(t.above, number+1)
		c, seen := t.calls[number]
		if seen && (c.always && c.answer != to || !c.always && c.clauses[0].answer != to) {
			return fmt.Errorf("%s has another action in another rule", name)
		}
		switch {
		case len(tests) == 0:
			c = call{always: true, answer: to}
		case !c.always:
			c.clauses = append(slices.Clip(c.clauses), clause{to, tests})
		}
		t.calls[number] = c
	}
	return nil
}

func testsOf(args []arg) ([]test, error) {
	var tests []test
	for _, a := range args {
		if a.Index > 5 {
			return nil, fmt.Errorf("a call has no argument %d", a.Index)
		}
		// runc takes such conditions as alternatives, others as all to hold.
		if slices.ContainsFunc(tests, func(t test) bool { return t.index == a.Index }) {
			return nil, fmt.Errorf("two conditions on argument %d", a.Index)
		}
		t := test{index: a.Index, mask: ^uint64(0), value: a.Value}
		switch a.Op {
		case "SCMP_CMP_EQ":
			if a.ValueTwo != 0 {
				return nil, fmt.Errorf("valueTwo has no meaning with %s", a.Op)
			}
		case "SCMP_CMP_MASKED_EQ":
			t.mask, t.value = a.Value, a.ValueTwo
			if t.value&^t.mask != 0 {
				return nil, fmt.Errorf("the value %#x under the mask %#x is never there", t.value, t.mask)
			}
		default:
			return nil, fmt.Errorf("the comparison %q is unknown", a.Op)
		}
		tests = append(tests, t)
	}
	return tests, nil
}
