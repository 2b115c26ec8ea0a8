//go:build linux

package main

import (
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
	"sync"
	"syscall"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/testnet"
)

// What the guard is given to do, for as long as -for says.
const (
	soakQuestions = 500    // each second
	soakNames     = 10_000 // that are asked for
	soakConns     = 1000   // at any time
	soakRSS       = 100    // MiB that the guard may have; its container has 128
	soakGrowth    = 1.10   // last quarter against second quarter
)

// soak lets a guard carry a steady load for long, in namespaces of its own with
// a test internet, and fails where it grows or where anything that it should
// carry isn't.
func (b *bench) soak() error {
	w, err := b.newSoakWorld()
	if err != nil {
		return err
	}
	defer w.close()
	s := &sampler{pid: w.guard.Process.Pid, control: filepath.Join(w.dir, "control", "control.sock")}
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
	return errors.Join(l.report(took), judge(before, samples, after))
}

// soakWorld is a room, a guard, and a test internet.
type soakWorld struct {
	dir         string
	in          *testnet.Internet
	outside, ns *testnet.NS
	room, guard *exec.Cmd
	ended       chan struct{} // closed when a process has ended
	once        sync.Once
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
	w.room = exec.Command(init, "room", "--name", "room", "--dir", filepath.Join(w.dir, "sockets"))
	if err := w.start(w.ns, w.room); err != nil {
		return w, err
	}
	w.guard = exec.Command(init, "guard", "--policy", filepath.Join(w.dir, "policy"), "--sockets", filepath.Join(w.dir, "sockets"),
		"--resolv-conf", "/nonexistent", "--control", filepath.Join(w.dir, "control", "control.sock"))
	w.guard.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return w, w.start(w.outside, w.guard)
}

// start starts a room or a guard and waits until it is ready. Its events are
// read and thrown away.
func (w *soakWorld) start(ns *testnet.NS, cmd *exec.Cmd) error {
	cmd.Stderr = os.Stderr
	r, wr, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout = wr
	err = ns.Start(cmd)
	wr.Close()
	if err != nil {
		r.Close()
		return err
	}
	line := make([]byte, 512)
	n, err := r.Read(line)
	if err == nil && string(line[:min(n, 5)]) != "READY" {
		err = fmt.Errorf("%s says %q", cmd.Args[1], line[:n])
	}
	go func() {
		_, _ = io.Copy(io.Discard, r)
		_ = cmd.Wait()
		w.once.Do(func() { close(w.ended) })
	}()
	return err
}

func (w *soakWorld) close() {
	for _, cmd := range []*exec.Cmd{w.guard, w.room} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill()
		}
	}
	if w.in != nil {
		w.in.Close()
	}
	for _, ns := range []*testnet.NS{w.ns, w.outside} {
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
	return &firewall.Policy{Version: firewall.PolicyVersion, Workshop: "soak", Resolvers: []string{testnet.DNS}, Rooms: []firewall.RoomPolicy{room}}, nil
}

// dial connects from inside the room, as a worker does.
func (w *soakWorld) dial(network, addr string) (c net.Conn, err error) {
	err = w.ns.Do(func() (err error) { c, err = net.DialTimeout(network, addr, 10*time.Second); return err })
	return c, err
}
