//go:build linux

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
)

// TestResolvConfIsReplaced: what programs do to the machine's resolv.conf is seen
// by the guard that runs; one that can't be read leaves it the last.
func TestResolvConfIsReplaced(t *testing.T) {
	eachMode(t, func(t *testing.T, w *world) {
		w.kill()
		dir := filepath.Dir(w.dir)
		w.etc = dir + "/etc"
		stub := dir + "/stub"
		conf := w.etc + "/resolv.conf"
		w.must(errors.Join(os.Mkdir(w.etc, 0o755), os.Mkdir(stub, 0o755)))
		write := func(name, text string) { w.Helper(); w.must(os.WriteFile(name, []byte(text), 0o644)) }
		replace := func(name, text string) { w.Helper(); write(name+".new", text); w.must(os.Rename(name+".new", name)) }

		write(conf, "one\n")
		w.start()
		c := w.shell("guard", "trap 'exit 0' TERM; echo READY; while :; do cat /run/resolv/resolv.conf; sleep 0.05; done")
		c.Role, c.Network.Mode = spec.Guard, spec.NetHost
		c.Mounts = append(c.Mounts, spec.Mount{Type: spec.Bind, Source: w.dir + "/" + api.ResolvDir, Target: "/run/resolv", ReadOnly: true})
		w.up(c)
		last := func() string {
			all := strings.Fields(w.log("guard"))
			return all[len(all)-1]
		}
		sees := func(text string) { w.Helper(); testutil.Eventually(w, text, func() bool { return last() == text }) }
		stays := func(text string) {
			w.Helper()
			time.Sleep(2*resolvLook + 100*time.Millisecond)
			if got := last(); got != text {
				t.Errorf("it sees %q, and had %q", got, text)
			}
		}
		sees("one")
		replace(conf, "two\n")
		sees("two")
		write(conf, "three\n") // in its place
		sees("three")
		write(stub+"/resolv.conf", "four\n")
		w.must(errors.Join(os.Symlink(stub+"/resolv.conf", conf+".new"), os.Rename(conf+".new", conf)))
		sees("four")
		replace(stub+"/resolv.conf", "five\n") // what the link leads to
		sees("five")
		w.must(os.Remove(stub + "/resolv.conf"))
		stays("five")
		w.must(unix.Mkfifo(stub+"/resolv.conf", 0o644))
		stays("five")
		// The guard is started again meanwhile, and has what there was.
		w.must(errors.Join(w.Stop(t.Context(), "guard"), w.Start(t.Context(), "guard")))
		stays("five")
		replace(stub+"/resolv.conf", "six\n")
		sees("six")
		b, err := os.ReadFile(w.dir + "/" + api.ErrorsName)
		if n := strings.Count(string(b), "/etc/resolv.conf is not a regular file"); err != nil || n != 1 {
			t.Errorf("it is said %d times: %s", n, b)
		}
		// What a supervisor left is no answer of the next one's machine.
		w.kill()
		w.must(os.Remove(conf))
		w.start()
		if list, err := os.ReadDir(w.dir + "/" + api.ResolvDir); err != nil || len(list) > 0 {
			t.Error(err, list)
		}
	})
}
