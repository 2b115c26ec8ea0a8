package monitor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/carrier/mux"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/mounttable"
	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/made"
	"github.com/llmdo/workshop/internal/toolbox/dialin"
	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/kit"
	"github.com/llmdo/workshop/internal/workerinit/pid1"
)

// maxConfig bounds the file of a [config.Machine], in bytes.
const maxConfig = 4 << 20

// exitKilled is the code of a worker whose memory was used up, that of SIGKILL.
const exitKilled = 128 + int(unix.SIGKILL)

// Run is `workshop-vm run FILE`, PID 1 of the container of a worker with a kernel of its own:
// it prints what the container is (package made), starts the machine that a [config.Machine]
// describes, and hands on what the guest's worker prints: READY, or "FAILED reason". It ends
// with the machine, a signal (0) or a lost mount ([pid1.MountLost]), and returns the exit
// code. The main goroutine must call it.
func Run(file string, stdout, stderr io.Writer) int {
	r := &monitor{lost: make(chan error, 1), signals: make(chan os.Signal, 16), out: newOutput(stdout, stderr), files: &server{}}
	code, err := r.run(file, stdout)
	r.out.close()
	said := make(chan struct{})
	go func() {
		defer close(said)
		r.say(err, stdout, stderr)
	}()
	select {
	case <-said:
	case <-time.After(outputTimeout): // nobody reads
	}
	return code
}

// say says why the worker ended; nil: nothing.
func (r *monitor) say(err error, stdout, stderr io.Writer) {
	if err != nil {
		text := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
		if !r.out.decided.Load() {
			fmt.Fprintln(stdout, "FAILED "+text)
		}
		fmt.Fprintln(stderr, "workshop-vm: error: "+text)
		r.lastWords(stderr)
	}
}

// monitor is a worker's.
type monitor struct {
	signals chan os.Signal
	lost    chan error // a mount
	out     *output
	files   *server
	machine *Machine // nil: it wasn't started
}

func (r *monitor) run(file string, stdout io.Writer) (code int, err error) {
	if err := prepare(); err != nil {
		return 1, err
	}
	runtime.LockOSThread() // QEMU and the file server end with the thread that started them
	wanted := []os.Signal{unix.SIGTERM, unix.SIGINT}
	signal.Notify(r.signals, wanted...)
	// Not read: a stdout without a reader doesn't end PID 1.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	if err := reaper.DropSignals(append(wanted, unix.SIGCHLD)...); err != nil { // who ignores that can't wait
		return 1, err
	}
	mounts, err := mounttable.Open()
	if err != nil {
		return 1, err
	}
	_, _ = io.WriteString(stdout, made.Line(mounts.Text()))
	go func() { r.lost <- mounts.Lost() }()
	m, err := readMachine(file)
	if err != nil {
		return 1, err
	}
	if err := r.start(m); err != nil {
		return 1, err
	}
	d := dialin.New(dialin.Dir, r.machine.session)
	err = d.Open()
	if err == nil {
		err = confine()
	}
	if err != nil {
		r.machine.kill()
		return 1, err
	}
	go d.Serve(context.Background())
	return r.wait(timeoutOf(m.Accelerator))
}

func readMachine(file string) (m config.Machine, err error) {
	text, err := boundedfile.Read(file, maxConfig)
	if err != nil {
		return m, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("%s: %w", file, err)
	}
	if m.Accelerator != config.KVM && m.Accelerator != config.TCG {
		return m, fmt.Errorf("%s: accelerator %q, want %s or %s", file, m.Accelerator, config.KVM, config.TCG)
	}
	return m, nil
}

// start starts the file server and QEMU.
func (r *monitor) start(m config.Machine) (err error) {
	s := Spec{Accelerator: m.Accelerator, Kernel: filepath.Join(m.Kit, kit.Vmlinux), MemoryMiB: m.MemoryMiB, CPUs: m.CPUs, Root: m.Root, Output: r.out.line}
	if m.Accelerator == config.TCG {
		p, err := ThisProcessor()
		if err != nil {
			return err
		}
		s.TSCkHz = p.TSCkHz
	}
	if m.Outlet != "" {
		s.Relay = Outlet(m.Outlet)
	}
	if s.Initramfs, err = kit.Initrd(m.Kit, m.Init, &m.Guest); err != nil {
		return err
	}
	defer s.Initramfs.Close()
	r.files, s.Shares, err = startServer(m)
	defer func() {
		for _, share := range s.Shares {
			share.Socket.Close()
		}
	}()
	if err != nil {
		return fmt.Errorf("file server: %w", err)
	}
	if r.machine, err = Start(s, nil); err != nil {
		return fmt.Errorf("%s: %w", Program, err)
	}
	return nil
}

// wait waits for the end, which a signal alone makes one without an error.
func (r *monitor) wait(timeout time.Duration) (code int, err error) {
	late := fmt.Errorf("the guest's kernel did not boot within %v: `workshop vm check` boots one and shows its console", timeout)
	within, cancel := context.WithTimeoutCause(context.Background(), timeout, late)
	defer cancel()
	booted := make(chan error, 1)
	go func() { booted <- r.machine.Ready(within) }()
	for {
		select {
		case <-r.signals:
			r.machine.Stop()
			return 0, nil
		case err := <-r.lost: // at once: what is in its place may be used otherwise
			r.machine.kill()
			return pid1.MountLost, err
		case err := <-booted:
			if errors.Is(err, late) {
				r.machine.kill()
				return 1, err
			}
		case <-r.files.ended:
			r.machine.kill()
			return r.ended()
		case <-r.machine.Done():
			return r.ended()
		}
	}
}

// together is how long after the end of one process that of another one may be its cause.
const together = 100 * time.Millisecond

// ended says why a worker that nobody ended has ended.
func (r *monitor) ended() (code int, err error) {
	if r.files.ended != nil {
		select {
		case <-r.files.ended:
		case <-time.After(together):
		}
	}
	state := r.machine.cmd.ProcessState
	switch {
	case errors.Is(r.machine.Err(), mux.ErrProtocol):
		err = fmt.Errorf("carrier: %w", r.machine.Err())
	case r.files.failed():
		err = fmt.Errorf("the file server ended: %v", r.files.cmd.ProcessState)
	case state.Success():
		err = errors.New("the guest powered off")
	case r.machine.ours.Load():
		err = fmt.Errorf("the guest ended its carrier, and was not powered off after %v", PowerOff)
	default:
		err = fmt.Errorf("QEMU ended: %v", state)
	}
	if e, problem := cgroup.EnforcedOn(os.Getpid()); problem == nil && e.Killed > 0 && (r.machine.wasKilled() || r.files.wasKilled()) {
		return exitKilled, fmt.Errorf("the memory of the machine's container was used up: %w", err)
	}
	return 1, err
}

// lastWords writes what the processes said last.
func (r *monitor) lastWords(to io.Writer) {
	if r.machine != nil {
		writeTail(to, "QEMU", &r.machine.said)
	}
	writeTail(to, "the file server", &r.files.said)
}

func writeTail(to io.Writer, who string, t *tail) {
	if text := t.String(); text != "" {
		fmt.Fprintf(to, "workshop-vm: %s said last:\n%s\n", who, text)
	}
}
