package files

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRequests: no requests, whatever they hold and in whatever order, reach beyond the
// share, change one that is read-only, or get an answer that isn't one.
func FuzzRequests(f *testing.F) {
	one := func(op, node byte, body ...any) []byte {
		b := words(body...)
		return append([]byte{op, node, byte(len(b))}, b...)
	}
	name := func(n string) string { return n + "\x00" }
	f.Add(false, append(one(opLookup, 1, name("dir")), one(opLookup, 2, name("file"))...))
	f.Add(false, append(one(opLookup, 1, name("file")), append(one(opOpen, 2, uint64(2)), one(opRead, 2, uint64(1), uint64(0), uint64(100), uint64(0), uint64(0))...)...))
	f.Add(true, append(one(opLookup, 1, name("file")), one(opSetattr, 2, uint64(1|1<<3), make([]byte, 80))...))
	f.Add(false, append(one(opLookup, 1, name("file")), append(one(opForget, 2, uint64(1)), one(opForget, 2, uint64(1))...)...))
	f.Add(false, append(one(opMkdir, 1, uint64(0o755), name("new")), one(opRename2, 1, uint64(2), uint64(0), name("dir")+name("in"))...))
	f.Add(false, append(one(opOpendir, 1, uint64(0)), one(opReaddirplus, 1, uint64(1), uint64(0), uint64(200), uint64(0), uint64(0))...))
	f.Add(false, append(one(opCreate, 1, uint64(0o100000002), uint64(0), name("c")), one(opWrite, 2, uint64(1), uint64(1<<40), uint32(4), make([]byte, 20), "data")...))
	f.Add(false, one(opSymlink, 1, name("l")+name("../secret")))
	f.Add(false, one(opRename, 1, uint64(1), name("../secret")+name("dir/../../x")))
	f.Add(false, one(opTmpfile, 1, uint64(2), uint64(0), name("/")))
	f.Add(false, append(one(opLookup, 1, name("file")), one(opSetxattr, 2, uint64(1), name("user.a"), "v")...))
	f.Add(false, append(one(opLookup, 1, name("link")), one(opReadlink, 2)...))
	f.Fuzz(func(t *testing.T, readOnly bool, program []byte) {
		root, secret := makeShare(t)
		g := newGuest(t, root, readOnly, Limits{Nodes: 100, Open: 10})
		out := make([]byte, 8192)
		for steps := 0; len(program) >= 3 && steps < 50; steps++ {
			op, node, size := uint32(program[0]), uint64(program[1]), min(int(program[2]), len(program)-3)
			if node == 0xff {
				node = ^uint64(0)
			}
			in := g.in(op, node, program[3:3+size])
			program = program[3+size:]
			n, err := g.s.s.request(in, out)
			if err != nil {
				t.Fatalf("operation %d of %d: %v", op, node, err)
			}
			if n != 0 && (n < outHeaderSize || int(binary.NativeEndian.Uint32(out)) != n || binary.NativeEndian.Uint64(out[8:]) != g.unique) {
				t.Fatalf("operation %d has an answer of %d bytes: %x", op, n, out[:min(n, 32)])
			}
		}
		if data, err := os.ReadFile(secret); string(data) != "outside" || err != nil {
			t.Fatalf("outside is %q, %v", data, err)
		}
		if got := strings.Join(entries(t, filepath.Dir(root)), " "); got != "secret share" {
			t.Fatalf("beside the share is %s", got)
		}
		if readOnly {
			if got := strings.Join(entries(t, root), " "); got != "dir file link" {
				t.Fatalf("the share has %s", got)
			}
		}
	})
}
