package initimage

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Whatever the bytes are, they are the same again; those of calls to one function become
// the same.
func TestAddresses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	opcodes := []byte{0xe8, 0xe9, 0x48, 0x4c, 0x8d, 0x8b, 0x89, 0x05, 0x0d, 0x00, 0xff}
	for size := range 3000 {
		was := make([]byte, size)
		for i := range was {
			was[i] = byte(random.Uint32())
			if random.IntN(3) > 0 {
				was[i] = opcodes[random.IntN(len(opcodes))]
			}
		}
		got := bytes.Clone(was)
		absolute(got)
		relative(got)
		if !bytes.Equal(got, was) {
			t.Fatalf("%d bytes: % x became % x", size, was, got)
		}
	}
	calls := []byte{0xe8, 100, 0, 0, 0, 0xe8, 95, 0, 0, 0, 0x48, 0x8d, 0x05, 88, 0, 0, 0, 0xe9, 0x53, 0, 0, 0}
	calls = append(calls, make([]byte, 200)...)
	absolute(calls)
	if want := []byte{0xe8, 101, 0, 0, 0, 0xe8, 101, 0, 0, 0, 0x48, 0x8d, 0x05, 101, 0, 0, 0, 0xe9, 101, 0, 0, 0}; !bytes.Equal(calls[:len(want)], want) {
		t.Errorf("got  % x\nwant % x", calls[:len(want)], want)
	}
	for name, pack := range map[string]func([]byte) []byte{"small": Pack, "fast": PackFast} {
		was := bytes.Clone(calls)
		if got, err := unpack(pack(calls)); err != nil || !bytes.Equal(got, was) || !bytes.Equal(calls, was) {
			t.Errorf("packed %s: got % x, %v", name, got[:20], err)
		}
	}
}
