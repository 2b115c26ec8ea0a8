package monitor

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"syscall"

	"github.com/llmdo/workshop/internal/vm/config"
	"github.com/llmdo/workshop/internal/vm/files"
)

// FilesCommand is the command of this program that is the file server.
const FilesCommand = "files"

// server is the process of a file server. The zero value is none, which never ends.
type server struct {
	cmd   *exec.Cmd
	said  tail
	ended chan struct{}
}

// startServer starts the file server of a machine's shares, and returns QEMU's ends of its
// sockets. Like QEMU it ends with the thread that starts it.
func startServer(m config.Machine) (s *server, shares []Share, err error) {
	s = &server{}
	if len(m.Shares) == 0 {
		return s, nil, nil
	}
	c := files.Config{Limits: files.Limits{Nodes: m.Nodes}}
	s.cmd = exec.Command("/proc/self/exe", FilesCommand)
	for i, share := range m.Shares {
		ours, theirs, err := pair("share " + share.Tag)
		if err != nil {
			return s, shares, err
		}
		defer theirs.Close()
		shares = append(shares, Share{Tag: share.Tag, Socket: ours})
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, theirs)
		c.Shares = append(c.Shares, files.Mount{Root: share.Dir, ReadOnly: share.ReadOnly, Socket: 3 + i})
	}
	text, err := json.Marshal(c)
	if err != nil {
		return s, shares, err
	}
	s.cmd.Stdin, s.cmd.Stderr = bytes.NewReader(text), &s.said
	s.cmd.Dir, s.cmd.Env = "/", []string{"GOMAXPROCS=2"} // a thread counts as a process
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return s, shares, err
	}
	s.ended = make(chan struct{})
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s, shares, nil
}

// failed reports whether it ended, and not because QEMU did.
func (s *server) failed() bool { return s.hasEnded() && !s.cmd.ProcessState.Success() }

func (s *server) wasKilled() bool { return s.hasEnded() && killed(s.cmd.ProcessState) }

func (s *server) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// killed reports whether SIGKILL ended a process.
func killed(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
