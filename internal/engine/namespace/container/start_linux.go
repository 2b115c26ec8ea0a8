package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/lib/reaper"
)

// Options has the descriptors and functions of a start that can't be in a spec.
type Options struct {
	// Stdin, Stdout and Stderr are the program's; nil: /dev/null.
	Stdin, Stdout, Stderr *os.File
	// NetNS is the network namespace of a container that joins one, and nil for any
	// other.
	NetNS *os.File
	// Files are the program's descriptors 3, 4, …
	Files []*os.File
	// Cgroup moves the container's PID 1 into its group; the set-up waits for it.
	// nil: none.
	Cgroup func(pid int) error
	// CgroupMounts are the mounts by which the container sees its group.
	CgroupMounts []CgroupMount
	// PidFD, if not nil, is set to a pidfd of the container's PID 1
	// (pidfd_open(2)), which the caller closes; -1 if there is none.
	PidFD *int
}

// startTimeout bounds a container's own set-up. Normally it takes some
// milliseconds; with a source on a file system that hangs it takes for ever.
const startTimeout = 30 * time.Second

// Starter starts a container's PID 1: a [reaper.Reaper].
type Starter interface {
	Start(path string, argv []string, attr *syscall.ProcAttr) (*reaper.Process, error)
}

// Start starts a container by program, which is workshop-init, and returns once the
// container's own program is executed. After an error there is no process, or one
// that has been killed.
func Start(starter Starter, program string, c *spec.Container, o Options) (*reaper.Process, error) {
	if err := Check(c); err != nil {
		return nil, err
	}
	fail := func(err error) (*reaper.Process, error) { return nil, fmt.Errorf("container %s: %w", c.Name, err) }
	if (o.NetNS != nil) != (c.Network.Mode == spec.NetJoin) {
		return fail(fmt.Errorf("the network mode %s doesn't match the namespace to join", c.Network.Mode))
	}
	orderRead, orderWrite, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer orderRead.Close()
	defer orderWrite.Close()
	statusRead, statusWrite, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer statusRead.Close()
	defer statusWrite.Close()

	to := order{Container: c, Cgroup: o.CgroupMounts}
	files := []*os.File{o.Stdin, o.Stdout, o.Stderr}
	for i, f := range files {
		if f != nil {
			continue
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return fail(err)
		}
		defer null.Close()
		files[i] = null
		to.Null = append(to.Null, i)
	}
	text, err := json.Marshal(to)
	if err != nil {
		return fail(err)
	}
	files = append(files, o.Files...)
	first := len(files)
	files = append(files, orderRead, statusWrite)
	if o.NetNS != nil {
		files = append(files, o.NetNS)
	}
	attr := &syscall.ProcAttr{
		Dir: "/",
		// The stage is short-lived: no garbage collection, and no look at the
		// control group for the number of processors.
		Env: []string{"GOGC=off", "GOMAXPROCS=2"},
		Sys: &syscall.SysProcAttr{
			Setsid:     true, // no terminal to type into (TIOCSTI)
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
			PidFD:      o.PidFD,
		},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	args := []string{"workshop-init", "contain", strconv.Itoa(first)}
	if c.Network.Mode == spec.NetNone || c.Network.Mode == spec.NetRoom {
		args = append(args, newNetworkArg)
		if c.Network.AnyIP {
			args[len(args)-1] = newRoomArg
		}
	}
	p, err := starter.Start(program, args, attr)
	if err != nil {
		return fail(fmt.Errorf("start %s: %w", program, err))
	}
	orderRead.Close()
	statusWrite.Close()
	if err := guide(p, text, orderWrite, statusRead, o.Cgroup); err != nil {
		_ = p.Signal(unix.SIGKILL)
		if o.PidFD != nil && *o.PidFD >= 0 {
			unix.Close(*o.PidFD)
			*o.PidFD = -1
		}
		return fail(err)
	}
	return p, nil
}

// Status of the stage: begun immediately before it executes the program; failed,
// with a text, on an error.
const (
	begun  = 'X'
	failed = 'E'
)

const maxError = 4096

func guide(p *reaper.Process, text []byte, to, from *os.File, cgroup func(int) error) error {
	if cgroup != nil {
		if err := p.While(func() error { return cgroup(p.Pid) }); err != nil {
			return fmt.Errorf("its control group: %w", err)
		}
	}
	deadline := time.Now().Add(startTimeout)
	_ = to.SetDeadline(deadline)
	_ = from.SetDeadline(deadline)
	_, writeErr := to.Write(text)
	to.Close()
	answer, err := io.ReadAll(io.LimitReader(from, maxError+2))
	said := strings.TrimPrefix(string(answer), string(begun))
	switch {
	case strings.HasPrefix(said, string(failed)):
		return errors.New(strings.ToValidUTF8(said[1:], "?"))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("set-up timed out after %v", startTimeout)
	case err != nil:
		return err
	case len(answer) == 1 && said == "":
		return nil
	case writeErr != nil:
		return fmt.Errorf("its first process ended: %w", writeErr)
	default:
		return fmt.Errorf("its first process exited before it executed the program")
	}
}
