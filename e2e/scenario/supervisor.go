//go:build linux

package scenario

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/lib/peercred"
)

// supervisor speaks with the supervisor of a project, as the caller.
type supervisor struct {
	conn *net.UnixConn
	in   *bufio.Reader
	fd   int // the last one that came along, or -1
}

// errNoSupervisor: none listens.
var errNoSupervisor = errors.New("no supervisor answers")

func dialSupervisor(c *caller, dir string) (*supervisor, error) {
	s := &supervisor{fd: -1}
	err := c.as(func() error {
		conn, err := net.DialTimeout("unix", filepath.Join(dir, api.SocketName), 5*time.Second)
		if err != nil {
			return errors.Join(errNoSupervisor, err)
		}
		s.conn = conn.(*net.UnixConn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	_ = s.conn.SetDeadline(time.Now().Add(30 * time.Second))
	s.in = bufio.NewReader(s)
	return s, nil
}

// Read reads from the connection, and keeps a descriptor that comes along.
func (s *supervisor) Read(p []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := s.conn.ReadMsgUnix(p, oob)
	if messages, e := unix.ParseSocketControlMessage(oob[:oobn]); e == nil {
		for _, m := range messages {
			if fds, e := unix.ParseUnixRights(&m); e == nil && len(fds) > 0 {
				s.fd = fds[0]
			}
		}
	}
	return max(n, 0), err
}

func (s *supervisor) ask(r api.Request) (api.Answer, error) {
	var a api.Answer
	b, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if _, err := s.conn.Write(append(b, '\n')); err != nil {
		return a, errors.Join(errNoSupervisor, err)
	}
	line, err := s.in.ReadBytes('\n')
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, io.EOF) { // it has ended meanwhile
		err = errors.Join(errNoSupervisor, err)
	}
	if err != nil {
		return a, fmt.Errorf("%s %s: %w", r.Op, r.Service, err)
	}
	if err := json.Unmarshal(line, &a); err != nil {
		return a, err
	}
	if a.Error != nil {
		return a, fmt.Errorf("%s %s: %w", r.Op, r.Service, a.Error)
	}
	return a, nil
}

func (s *supervisor) Close() {
	if s.fd >= 0 {
		unix.Close(s.fd)
	}
	s.conn.Close()
}

// pid is what the pidfd of a service's main process stands for in this PID
// namespace: the line Pid of its fdinfo (proc_pid_fdinfo(5)).
func (s *supervisor) pid(service string) (int, error) {
	if _, err := s.ask(api.Request{Op: api.OpPid, Service: service}); err != nil {
		return 0, err
	}
	if s.fd < 0 {
		return 0, fmt.Errorf("no descriptor came with the answer to %s", api.OpPid)
	}
	defer func() { unix.Close(s.fd); s.fd = -1 }()
	b, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(s.fd))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "Pid:"); ok {
			return strconv.Atoi(strings.TrimSpace(v))
		}
	}
	return 0, errors.New("the descriptor is not a pidfd")
}

// control connects to the guard's control, which is handed out as a descriptor.
func (s *supervisor) control() error {
	if _, err := s.ask(api.Request{Op: api.OpControl, Service: "guard"}); err != nil {
		return err
	}
	if s.fd < 0 {
		return fmt.Errorf("no descriptor came with the answer to %s", api.OpControl)
	}
	return nil
}

// process is the supervisor's process on this machine: who made its socket.
func (s *supervisor) process() (int, error) {
	cred, err := peercred.Of(s.conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}
