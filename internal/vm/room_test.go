//go:build linux && amd64

package vm_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// room is a network namespace in which every address is a server's, with an outlet.
type room struct {
	*testing.T
	ns     *testnet.NS
	rounds chan string
	found  chan map[string]dialled
	dir    string // in which the outlet listens
	outlet *exec.Cmd
}

func (r *room) socket() string { return filepath.Join(r.dir, "outlet.sock") }

func newRoom(t *testing.T) *room {
	testutil.Require(t, os.Getuid() == 0, "it needs root")
	ns, err := testnet.NewNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	r := &room{T: t, ns: ns, rounds: make(chan string, 1), found: make(chan map[string]dialled, 1), dir: t.TempDir()}
	if err := ns.Do(testcarrier.EveryAddress); err != nil {
		t.Fatal(err)
	}
	r.serve("0.0.0.0:80", func(c net.Conn) { r.large(c) })
	r.serve("127.0.0.1:536", func(c net.Conn) { reply(c, "the guard's proxy") })
	r.serve("127.9.9.9:443", func(c net.Conn) { reply(c, "not for workers") })
	r.serve("127.0.0.1:443", func(c net.Conn) { reply(c, "not for workers") })
	r.serve(results, r.results)
	var dns net.PacketConn
	if err := ns.Do(func() (err error) { dns, err = net.ListenPacket("udp4", "127.0.0.1:53"); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dns.Close() })
	go func() {
		for b := make([]byte, 512); ; {
			n, from, err := dns.ReadFrom(b)
			if err != nil {
				return
			}
			dns.WriteTo(append([]byte("answer to "), b[:n]...), from)
		}
	}()
	return r
}

func (r *room) serve(at string, f func(net.Conn)) {
	r.Helper()
	var l net.Listener
	if err := r.ns.Do(func() (err error) { l, err = net.Listen("tcp4", at); return err }); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { l.Close() })
	go testnet.Serve(l, f)
}

// reply answers a request that was read: a connection that is closed with something unread is
// reset, and its peer may not read the answer then.
func reply(c net.Conn, text string) {
	if _, err := io.Copy(io.Discard, c); err == nil {
		_, _ = io.WriteString(c, text)
	}
}

// large answers a request that arrived whole.
func (r *room) large(c net.Conn) {
	if b, err := io.ReadAll(c); err == nil && string(b) == "GET /large" {
		_, _ = c.Write(large)
	}
}

// results tells the guest what to do next, or takes what it found.
func (r *room) results(c net.Conn) {
	b, err := io.ReadAll(c)
	if err != nil {
		return
	}
	if string(b) == "begin" {
		select {
		case next := <-r.rounds:
			_, _ = io.WriteString(c, next)
		case <-time.After(time.Second):
		}
		return
	}
	var found map[string]dialled
	if json.Unmarshal(b, &found) == nil {
		r.found <- found
	}
}

// round has the guest do something, and returns what it found.
func (r *room) round(what string) map[string]dialled {
	r.Helper()
	r.rounds <- what
	select {
	case found := <-r.found:
		return found
	case <-time.After(2 * time.Minute):
		r.Fatalf("%s: the guest tells nothing", what)
		return nil
	}
}

// startOutlet starts an outlet in the namespace.
func (r *room) startOutlet() {
	r.Helper()
	cmd := exec.Command("/proc/self/exe", "--socket", r.socket(), "--inbound", inboundPort)
	cmd.Env, cmd.Stderr = []string{asOutlet + "=1"}, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = r.ns.Start(cmd)
	}
	if err != nil {
		r.Fatal(err)
	}
	r.outlet = cmd
	r.Cleanup(func() { stop(cmd) })
	for lines := bufio.NewReader(out); ; {
		if line, err := lines.ReadString('\n'); err != nil {
			r.Fatalf("the outlet: %q, %v", line, err)
		} else if line == "READY\n" {
			return
		}
	}
}

// newOutlet replaces it.
func (r *room) newOutlet() {
	stop(r.outlet)
	r.startOutlet()
	time.Sleep(time.Second) // until results doesn't answer one of before any more
}

func stop(cmd *exec.Cmd) {
	if cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// boot starts a machine on a thread that stays until the test ends: QEMU ends with the one
// that started it, and those that enter a namespace end.
func (r *room) boot(s monitor.Spec, change func(*exec.Cmd)) (m *monitor.Machine, err error) {
	done, started := make(chan bool), make(chan bool)
	r.Cleanup(func() { close(done) })
	go func() {
		runtime.LockOSThread()
		m, err = monitor.Start(s, change)
		close(started)
		<-done
	}()
	<-started
	return m, err
}
