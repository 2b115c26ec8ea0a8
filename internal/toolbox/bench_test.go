//go:build linux

package toolbox

import (
	"os/exec"
	"testing"

	"github.com/llmdo/workshop/tool"
)

// BenchmarkCall: one call of /bin/true in an open session, beside the floor,
// a process on the host; and with eight callers.
func BenchmarkCall(b *testing.B) {
	c := open(b, everything()).session(RoleTools)
	args := tool.ShellArgs{Argv: []string{"/bin/true"}}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ping", func(b *testing.B) {
		for b.Loop() {
			if err := c.Call(b.Context(), "ping", struct{}{}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call", func(b *testing.B) {
		for b.Loop() {
			if r := c.run(args); r.ExitCode != 0 {
				b.Fatal(r)
			}
		}
	})
	b.Run("floor-8", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				exec.Command("/bin/true").Run()
			}
		})
	})
	b.Run("call-8", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.run(args)
			}
		})
	})
	b.Run("1MB", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			c.run(tool.ShellArgs{Command: "head -c 1M /dev/zero | tr '\\0' x", MaxOutputBytes: 2 << 20})
		}
	})
	b.Run("1MB-floor", func(b *testing.B) {
		b.SetBytes(1 << 20)
		for b.Loop() {
			exec.Command("sh", "-c", "head -c 1M /dev/zero | tr '\\0' x").Output()
		}
	})
}

// BenchmarkSession: from nothing to the first answer.
func BenchmarkSession(b *testing.B) {
	r := open(b, everything())
	for b.Loop() {
		c := r.session(RoleTools)
		c.Close()
	}
}
