//go:build linux && amd64

package vm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/outlet"
	"github.com/llmdo/workshop/internal/dev/testcarrier"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	internalroom "github.com/llmdo/workshop/internal/room"
	"github.com/llmdo/workshop/internal/vm/guest"
	"github.com/llmdo/workshop/internal/vm/monitor"
)

// asOutlet in the environment makes this program the outlet of a machine.
const asOutlet = "WORKSHOP_TEST_OUTLET"

// networkGuest is the kind of a guest that uses its carrier as a worker does: ours, with a
// program that dials.
const networkGuest = "network"

func init() {
	switch {
	case os.Getenv(asOutlet) != "":
		os.Exit(outlet.Main(os.Args[1:], os.Stdout, os.Stderr))
	case os.Getpid() == 1 && kindOf() == networkGuest:
		go useNetwork()
		go func() {
			if l, err := net.Listen("tcp4", "127.0.0.1:"+inboundPort); err == nil {
				testnet.Serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
			}
		}()
		guest.Main(nil, os.Stderr, internalroom.LocalAddresses)
	}
}

// inboundPort is published by the worker, which echoes there.
const inboundPort = "8080"

// large is what the server in the room sends.
var large = bytes.Repeat([]byte("0123456789abcdef"), 1<<16)

// results is where a guest tells what it found.
const results = "198.51.100.7:22"

// dialled is what a guest found at a place: what it read, how that ended, and when.
type dialled struct {
	Text, Error string
	Same        bool // the text is large
	Took        time.Duration
}

func try(network, to, say string) (d dialled) {
	began := time.Now()
	c, err := net.DialTimeout(network, to, 20*time.Second)
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		_, sent := io.WriteString(c, say)
		var text []byte
		if network == "udp4" {
			text = make([]byte, 512)
			var n int
			n, err = c.Read(text)
			text = text[:n]
		} else {
			_ = c.(*net.TCPConn).CloseWrite()
			text, err = io.ReadAll(c)
		}
		if err == nil { // a reset is told once, to whoever asks first
			err = sent
		}
		if d.Same = bytes.Equal(text, large); !d.Same {
			d.Text = string(text[:min(len(text), 100)])
		}
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		d.Error = unix.ErrnoName(errno)
		if errno == unix.EPIPE {
			d.Error = "ECONNRESET"
		}
	} else if err != nil {
		d.Error = err.Error()
	}
	d.Took = time.Since(began)
	return d
}

// useNetwork is the guest's worker. Each round begins when the server of results answers.
func useNetwork() {
	for {
		round := try("tcp4", results, "begin")
		if round.Text == "" {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		found := map[string]dialled{}
		switch round.Text {
		case "places":
			for _, to := range []string{"198.51.100.7:80", "198.51.100.8:443", "198.51.100.9:12345", "127.0.0.1:80", "127.0.0.1:536", "127.9.9.9:443", "0.0.0.0:443", "[2001:db8::1]:443"} {
				found[to] = try("tcp", to, "GET /large")
			}
			found["dns"] = try("udp4", "198.51.100.53:53", "query")
		case "many":
			var all sync.WaitGroup
			var mu sync.Mutex
			for i := range 64 {
				all.Go(func() {
					to := fmt.Sprintf("198.51.100.%d:80", i+1)
					d := try("tcp4", to, "GET /large")
					mu.Lock()
					defer mu.Unlock()
					found[to] = d
				})
			}
			all.Wait()
		}
		said, _ := json.Marshal(found)
		try("tcp4", results, string(said))
	}
}

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
	r.serve("127.0.0.1:536", func(c net.Conn) { io.WriteString(c, "the guard's proxy") })
	r.serve("127.9.9.9:443", func(c net.Conn) { io.WriteString(c, "not for workers") })
	r.serve("127.0.0.1:443", func(c net.Conn) { io.WriteString(c, "not for workers") })
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

// B10 B13 B20 B22 B29: what a guest dials is dialled in its worker's room, whose outlet may end
// without the guest.
func TestNetwork(t *testing.T) {
	r := newRoom(t)
	s := spec(t, mark(t, networkGuest), nil)
	r.startOutlet()
	s.Relay, s.Console = monitor.Outlet(r.socket()), true
	var said bytes.Buffer
	m, err := r.boot(s, func(cmd *exec.Cmd) { cmd.Stdout, cmd.Stderr = &said, &said })
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		m.Stop()
		if t.Failed() {
			t.Logf("%v; the console:\n%s", m.Err(), &said)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := m.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	places := func() {
		t.Helper()
		found := r.round("places")
		for to, want := range map[string]dialled{
			"198.51.100.7:80":    {Same: true},
			"198.51.100.8:443":   {Error: "ECONNRESET"},   // nobody's in the room
			"198.51.100.9:12345": {Error: "ECONNREFUSED"}, // no port of the policy
			"127.0.0.1:80":       {Error: "ECONNRESET"},
			"127.0.0.1:536":      {Text: "the guard's proxy"},
			"127.9.9.9:443":      {Error: "ECONNRESET"},
			"0.0.0.0:443":        {Error: "ECONNRESET"},
			"[2001:db8::1]:443":  {Error: "ENETUNREACH"},
			"dns":                {Text: "answer to query"},
		} {
			got := found[to]
			if took := got.Took; want.Error != "" && took > 5*time.Second {
				t.Errorf("%s: the end took %v", to, took)
			}
			t.Logf("%s: %+v", to, got)
			if got.Took = 0; got != want {
				t.Errorf("%s: %+v, want %+v", to, got, want)
			}
		}
	}
	many := func() {
		t.Helper()
		began := time.Now()
		found := r.round("many")
		t.Logf("64 streams, each of %d bytes: %v", len(large), time.Since(began))
		if len(found) != 64 {
			t.Errorf("%d of 64", len(found))
		}
		for to, d := range found {
			if !d.Same || d.Error != "" {
				t.Errorf("%s: %+v", to, d)
			}
		}
	}
	inbound := func() {
		t.Helper()
		var c net.Conn
		if err := r.ns.Do(func() (err error) { c, err = net.Dial("tcp4", "127.0.0.1:"+inboundPort); return err }); err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { _, _ = c.Write(large); _ = c.(*net.TCPConn).CloseWrite() }()
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, large) {
			t.Errorf("a published port: %d bytes, %v", len(got), err)
		}
	}
	places()
	many()
	inbound()
	r.newOutlet()
	places()
	inbound()
	select {
	case <-m.Done():
		t.Errorf("the machine ended: %v", m.Err())
	default:
	}
	if strings.Contains(said.String(), "relay: ") {
		t.Errorf("the guest's relay says: %s", &said)
	}
}
