package vhost

import (
	"encoding/binary"
	"testing"
)

// FuzzRing: whatever a guest writes into its memory, a request is either refused or within
// the memory and the limits, and taking requests ends.
func FuzzRing(f *testing.F) {
	const num, descs, avail, used = 8, 0, 128, 160
	seed := make([]byte, 1024)
	binary.LittleEndian.PutUint64(seed[0:], 0x1000+512)
	binary.LittleEndian.PutUint32(seed[8:], 40)
	binary.LittleEndian.PutUint16(seed[12:], descNext)
	binary.LittleEndian.PutUint16(seed[14:], 1)
	binary.LittleEndian.PutUint64(seed[16:], 0x1000+600)
	binary.LittleEndian.PutUint32(seed[24:], 16)
	binary.LittleEndian.PutUint16(seed[28:], descWrite)
	binary.LittleEndian.PutUint16(seed[avail+2:], 1)
	f.Add(seed)
	indirect := append([]byte(nil), seed...)
	copy(indirect[512:], seed[:32])
	binary.LittleEndian.PutUint32(indirect[8:], 32)
	binary.LittleEndian.PutUint16(indirect[12:], descIndirect)
	f.Add(indirect)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 8192 {
			t.Skip()
		}
		data := make([]byte, max(len(b), 1024))
		copy(data, b)
		m := memory{{guest: 0x1000, user: 0x9000, data: data}}
		r, err := newRing(m, num, 0x9000+descs, 0x9000+avail, 0x9000+used)
		if err != nil {
			t.Fatal(err)
		}
		buf, before := make([]byte, 4096), r.done
		for taken := 0; ; taken++ {
			c, ok, err := r.pop(m)
			if err != nil || !ok {
				return
			}
			if taken > num {
				return // the responses may have changed the rings: a guest's may overlap
			}
			if len(c.in)+len(c.out) > max(num, len(data)/descSize) {
				t.Fatalf("%d descriptors", len(c.in)+len(c.out))
			}
			in, err := c.read(m, buf)
			if err != nil {
				continue
			}
			if uint64(len(in)) != c.inLen {
				t.Fatalf("%d of %d bytes", len(in), c.inLen)
			}
			response := buf[:min(uint64(len(buf)), c.outLen)]
			if err := c.write(m, response); err != nil {
				t.Fatal(err)
			}
			r.push(c, len(response))
			if r.done != before+uint16(taken)+1 {
				t.Fatalf("the used ring is at %d", r.done)
			}
		}
	})
}
