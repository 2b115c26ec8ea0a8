//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/made"
)

// The load on the guard, for the duration of -for.
const (
	soakQuestions = 500                                 // each second
	soakNames     = 10_000                              // that are asked for
	soakConns     = 400                                 // at any time: a room of two is guaranteed 512
	soakMemory    = firewall.GuardMemory * 8 / 10 >> 20 // MiB that the guard may have, the kernel's buffers included
	soakGrowth    = 1.10                                // last quarter against second quarter
	soakLost      = 10_000                              // fewer than one of so many requests may fail
)

// soak puts a guard under a steady load for a long time, in its own namespaces with a
// test internet, and fails if the guard grows or fails to carry a connection.
func (b *bench) soak() error {
	w, err := b.newSoakWorld()
	if err != nil {
		return err
	}
	defer w.close()
	s := &sampler{pid: w.guard.Process.Pid, memory: w.memory, control: filepath.Join(w.dir, "control", "control.sock")}
	before, err := s.sample()
	if err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	l := &soakLoad{soakWorld: w}
	if err := l.open(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "bench: %d connections are open; %d questions a second for %s …\n", soakConns, soakQuestions, b.soakFor)
	start := time.Now()
	l.ask(ctx)
	h := &hostile{soakWorld: w}
	if err := h.begin(ctx); err != nil {
		return err
	}
	every := min(5*time.Second, max(time.Second, b.soakFor/60))
	tick := time.NewTicker(every)
	defer tick.Stop()
	var samples []sample
	for time.Since(start) < b.soakFor {
		select {
		case <-b.ctx.Done():
			return b.ctx.Err()
		case <-w.ended:
			return errors.New("the guard or the room has ended")
		case <-tick.C:
		}
		x, err := s.sample()
		if err != nil {
			return err
		}
		samples = append(samples, x)
	}
	took := time.Since(start)
	cancel()
	l.wait()
	h.wg.Wait()
	h.report()

	// What was for the load is gone again.
	after := before
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		if after, err = s.sample(); err != nil {
			return err
		}
		if after.sockets <= before.sockets+10 {
			break
		}
	}
	peak, err := w.memory.Peak()
	fmt.Printf("the guard's peak: %d MiB of %d\n", peak>>20, firewall.GuardMemory>>20)
	if err == nil && peak>>20 > soakMemory {
		err = fmt.Errorf("the guard used %d MiB, want at most %d", peak>>20, soakMemory)
	}
	return errors.Join(l.report(took), judge(before, samples, after), err)
}

// soakWorld is a room that works, one that is hostile, their guard, and a test
// internet.
type soakWorld struct {
	dir                    string
	in                     *testnet.Internet
	outside, ns, hostileNS *testnet.NS
	memory                 *testutil.MemoryGroup // of the guard, with the limit that it has
	guard                  *exec.Cmd
	rooms                  []*exec.Cmd
	ended                  chan struct{} // closed when a process has ended
	once                   sync.Once
}

// Names of the load: soakName is one of many, soakHost one of those that are
// connected to, wildName one of few under a wildcard.
func soakName(i int) string { return fmt.Sprintf("n%04d.soak.example.org", i) }
func soakHost(i int) string { return fmt.Sprintf("c%02d.web.example.org", i) }
func wildName(i int) string { return fmt.Sprintf("w%02d.wild.example.org", i) }

const (
	soakHosts = 60
	wildNames = 40
	pinnedTCP = "tcp.example.org" // a name with a port
)

// soakAddr is what the test internet answers for the i-th name.
func soakAddr(i int) string { return fmt.Sprintf("198.51.100.%d", 100+i%150) }

func (b *bench) newSoakWorld() (w *soakWorld, err error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("network namespaces need root")
	}
	// Go gives its own limit to nobody whom it starts unless it was set.
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		limit.Cur = min(limit.Max, 65536)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	w = &soakWorld{dir: b.dir, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.outside, err = testnet.NewNS(); err != nil {
		return w, err
	}
	if w.ns, err = testnet.NewNS(); err != nil {
		return w, err
	}
	if w.hostileNS, err = testnet.NewNS(); err != nil {
		return w, err
	}
	if w.memory, err = testutil.NewMemoryGroup(firewall.GuardMemory); err != nil {
		return w, err
	}
	if w.in, err = testnet.Start(b.ctx, testnet.Options{Near: w.outside}); err != nil {
		return w, err
	}
	w.zone()
	for dir, mode := range map[string]os.FileMode{"sockets": 0o755, "policy": 0o755, "control": 0o700} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), mode); err != nil {
			return w, err
		}
	}
	const uid = 65532 // as in its container
	if err := os.Chown(filepath.Join(w.dir, "control"), uid, uid); err != nil {
		return w, err
	}
	p, err := soakPolicy()
	if err != nil {
		return w, err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "policy", "policy.json"), firewall.EncodePolicy(p), 0o644); err != nil {
		return w, err
	}
	init := filepath.Join(b.bin, "workshop-init-linux-"+runtime.GOARCH)
	for name, ns := range map[string]*testnet.NS{"room": w.ns, "room-hostile": w.hostileNS} {
		room := exec.Command(init, "room", "--name", name, "--dir", filepath.Join(w.dir, "sockets"))
		w.rooms = append(w.rooms, room)
		if err := w.start(ns, room, room.Start); err != nil {
			return w, err
		}
	}
	w.guard = exec.Command(init, "guard", "--policy", filepath.Join(w.dir, "policy"), "--sockets", filepath.Join(w.dir, "sockets"),
		"--resolv-conf", "/nonexistent", "--control", filepath.Join(w.dir, "control", "control.sock"))
	w.guard.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return w, w.start(w.outside, w.guard, func() error { return w.memory.Start(w.guard) })
}

// start starts a room or a guard by begin and waits until it is ready. Its events
// are read and thrown away.
func (w *soakWorld) start(ns *testnet.NS, cmd *exec.Cmd, begin func() error) error {
	cmd.Stderr = os.Stderr
	r, wr, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = wr
	err = ns.Do(begin)
	wr.Close()
	if err != nil {
		r.Close()
		return err
	}
	lines := bufio.NewReader(r)
	line, err := lines.ReadString('\n')
	if err == nil && strings.HasPrefix(line, made.Prefix) {
		line, err = lines.ReadString('\n')
	}
	if err == nil && line != "READY\n" {
		err = fmt.Errorf("%s says %q", cmd.Args[1], line)
	}
	go func() {
		_, _ = io.Copy(io.Discard, r)
		_ = cmd.Wait()
		w.once.Do(func() { close(w.ended) })
	}()
	return err
}

func (w *soakWorld) close() {
	for _, cmd := range append(w.rooms, w.guard) {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	}
	if w.memory != nil {
		for range 100 { // until the guard has ended
			if w.memory.Remove() == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	if w.in != nil {
		w.in.Close()
	}
	for _, ns := range []*testnet.NS{w.ns, w.hostileNS, w.outside} {
		if ns != nil {
			_ = ns.Close()
		}
	}
}

// zone fills the test internet's DNS: TTLs from 5 to 64 s.
func (w *soakWorld) zone() {
	for i := range soakNames {
		w.in.Answer(soakName(i), testnet.A(soakAddr(i)).For(uint32(5+i%60)))
	}
	for i := range soakHosts {
		w.in.Answer(soakHost(i), testnet.A(soakAddr(i)).For(30))
	}
	for i := range wildNames {
		w.in.Answer(wildName(i), testnet.A(soakAddr(i)).For(5))
	}
	w.in.Answer(pinnedTCP, testnet.A("198.51.100.90"))
}

func soakPolicy() (*firewall.Policy, error) {
	room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Workers: []string{"soak"}}
	allow := func(host string, ports []firewall.PortRange) error {
		h, err := firewall.ParseHostPattern(host)
		room.Allow = append(room.Allow, firewall.Rule{Host: h, Ports: ports, Line: fmt.Sprintf("workshop.yaml:%d", 10+len(room.Allow))})
		return err
	}
	web := firewall.DefaultAllowPorts()
	for i := range soakNames {
		if err := allow(soakName(i), web); err != nil {
			return nil, err
		}
	}
	for i := range soakHosts {
		if err := allow(soakHost(i), web); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(allow("*.wild.example.org", web), allow(pinnedTCP, []firewall.PortRange{{First: 2222, Last: 2222}})); err != nil {
		return nil, err
	}
	room.Allow = append(room.Allow, firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.192/26"), Ports: []firewall.PortRange{{First: 9000, Last: 9000}}})
	hostile := room
	hostile.Room, hostile.Workers = "room-hostile", []string{"hostile"}
	hostile.Allow = append(hostile.Allow[len(hostile.Allow)-3:len(hostile.Allow):len(hostile.Allow)],
		firewall.Rule{CIDR: netip.MustParsePrefix("198.51.100.201/32"), Ports: []firewall.PortRange{{First: 9101, Last: 9102}}})
	return &firewall.Policy{
		Version: firewall.PolicyVersion, Workshop: "soak", Resolvers: []string{testnet.DNS}, Rooms: []firewall.RoomPolicy{room, hostile},
		Publish: []firewall.Publish{{Room: "room-hostile", Listen: hostilePort, Target: 8080, Worker: "hostile"}},
	}, nil
}

// dial connects from inside the room, as a worker does.
func (w *soakWorld) dial(network, addr string) (net.Conn, error) {
	return w.dialIn(w.ns, network, addr)
}

func (w *soakWorld) dialIn(ns *testnet.NS, network, addr string) (c net.Conn, err error) {
	err = ns.Do(func() (err error) { c, err = net.DialTimeout(network, addr, 10*time.Second); return err })
	return c, err
}
