package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/guard/buffers"
)

// Version returns the version of this machine's QEMU, 7.2 or later.
func Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, Program, "--version")
	cmd.Env = []string{}
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", Program, err)
	}
	return parseVersion(string(out))
}

// Machine is a virtual machine that runs.
type Machine struct {
	cmd    *exec.Cmd
	mux    *mux.Mux
	output func(carrier.Head)
	said   tail        // by QEMU, or by the guest on its console
	ours   atomic.Bool // we killed it

	ready   chan struct{} // closed when the guest says so
	carried chan struct{} // closed when the carrier ended, why is in err
	err     error
	ended   chan struct{} // closed when all of it ended
}

// errReady is the end of a guest that says a second time that it is ready.
var errReady = fmt.Errorf("%w: it is ready twice", mux.ErrProtocol)

// Start starts a machine. Its guest isn't ready yet ([Machine.Ready]). change, which may
// be nil, changes how the process is started.
func Start(s Spec, change func(*exec.Cmd)) (*Machine, error) {
	conn, theirs, err := socketpair("carrier")
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	m := &Machine{output: s.Output, ready: make(chan struct{}), carried: make(chan struct{}), ended: make(chan struct{})}
	m.cmd = exec.Command(Program, Args(s)...)
	m.cmd.Dir, m.cmd.Env = "/", []string{}
	m.cmd.ExtraFiles = []*os.File{s.Initramfs, theirs}
	for _, share := range s.Shares {
		m.cmd.ExtraFiles = append(m.cmd.ExtraFiles, share.Socket)
	}
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	// It doesn't outlive us.
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if change != nil {
		change(m.cmd)
	}
	if err := m.cmd.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	config := mux.Config{Streams: carrier.MaxStreams, Message: m.message}
	if s.Relay == nil {
		m.mux = mux.New(conn, config)
	} else {
		o := newOnward(s.Relay)
		config.Accept, config.Serve = o.accept, o.serve
		m.mux = mux.New(conn, config)
		go o.run(m.mux)
	}
	exited := make(chan struct{})
	go func() {
		_ = m.cmd.Wait()
		m.mux.End(nil)
		close(exited)
	}()
	go func() {
		m.err = m.mux.Run()
		close(m.carried)
		select { // a machine without its carrier is of no use
		case <-exited:
		case <-time.After(PowerOff):
			m.signal()
			<-exited
		}
		close(m.ended)
	}()
	return m, nil
}

// message takes what a guest may say: that it is ready, once, and its worker's lines.
func (m *Machine) message(text []byte) error {
	h, err := carrier.DecodeOf(text, carrier.Ready, carrier.Output)
	if err != nil {
		return err
	}
	if h.Kind == carrier.Output {
		if m.output == nil {
			return carrier.ErrWay
		}
		m.output(h)
		return nil
	}
	select {
	case <-m.ready:
		return errReady
	default:
	}
	close(m.ready)
	return nil
}

// Ready waits until the guest says that it is ready.
func (m *Machine) Ready(ctx context.Context) error {
	select {
	case <-m.ready:
		return nil
	case <-m.carried:
		if errors.Is(m.err, mux.ErrProtocol) {
			return fmt.Errorf("carrier: %w", m.err)
		}
		return errors.New("the machine ended before its guest was ready")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done is closed when the machine has ended.
func (m *Machine) Done() <-chan struct{} { return m.ended }

// Err returns why the carrier ended, which a machine ends with. It is valid after Done.
func (m *Machine) Err() error { return m.err }

// PowerOff is how long a guest may take to power off once its carrier ended; then the
// process is killed.
const PowerOff = 3 * time.Second

// Stop ends the carrier, and with it the machine.
func (m *Machine) Stop() {
	m.mux.End(nil)
	<-m.ended
}

// kill is Stop without a moment to power off.
func (m *Machine) kill() {
	m.signal()
	m.Stop()
}

func (m *Machine) signal() {
	m.ours.Store(true)
	_ = m.cmd.Process.Kill()
}

// wasKilled reports whether another one killed QEMU. It is valid after Done.
func (m *Machine) wasKilled() bool { return !m.ours.Load() && killed(m.cmd.ProcessState) }

// session carries a session of the worker's tools to the guest, on a connection of which it
// gets a descriptor ([dialin.New]).
func (m *Machine) session(conn int) (done <-chan struct{}, err error) {
	fd, err := unix.FcntlInt(uintptr(conn), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "session")
	c, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, err
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		s, err := m.mux.Open(carrier.Head{Kind: carrier.Session}.Encode()) // waits for a guest that doesn't read
		if err != nil {
			c.Close()
			return
		}
		carrier.JoinUnix(c.(*net.UnixConn), s, buffers.For(1, carrier.MaxStreams))
	}()
	return over, nil
}

// Boot starts a machine and waits until its guest is ready, at most for the timeout. If it
// isn't, and QEMU didn't say why, a second machine with a console shows it: the error has
// its last lines. One with shares isn't started twice: their server ends with the first.
func Boot(ctx context.Context, s Spec, timeout time.Duration) (*Machine, error) {
	m, err := boot(ctx, s, timeout)
	if err == nil || m == nil || m.said.String() != "" || ctx.Err() != nil || len(s.Shares) > 0 {
		return running(m, err)
	}
	s.Console = true
	began := time.Now()
	m, again := boot(ctx, s, timeout)
	switch {
	case again == nil:
		m.Stop()
		return nil, fmt.Errorf("%w, but within %v when it was started again: this machine is under load, or slow", err, time.Since(began).Round(time.Second/10))
	case m == nil || m.said.String() == "":
		return nil, fmt.Errorf("%w; started again: %w", err, again)
	}
	return nil, fmt.Errorf("%w; its console said last:\n%s", err, &m.said)
}

func running(m *Machine, err error) (*Machine, error) {
	if err == nil {
		return m, nil
	}
	if m != nil && m.said.String() != "" {
		err = fmt.Errorf("%w:\n%s", err, &m.said)
	}
	return nil, err
}

// boot returns a machine that was stopped, and why, if its guest isn't ready in time.
func boot(ctx context.Context, s Spec, timeout time.Duration) (*Machine, error) {
	late := fmt.Errorf("the guest was not ready within %v", timeout)
	within, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	m, err := Start(s, nil)
	if err != nil {
		return nil, err
	}
	if err := m.Ready(within); err != nil {
		m.Stop()
		return m, err
	}
	return m, nil
}
