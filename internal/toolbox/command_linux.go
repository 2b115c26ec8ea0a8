package toolbox

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/lib/workdir"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

const (
	// grace is how long a command has to end after SIGTERM.
	grace = 200 * time.Millisecond
	// killWithin bounds the killing of one command's processes.
	killWithin = 5 * time.Second
)

// program is what to start.
type program struct {
	argv []string
	env  []string // added to the worker's; the last of a name counts
	cwd  string   // empty: the worker's working directory
	// tool: what it leaves running ends with the session at the latest.
	tool                  bool
	stdin, stdout, stderr *os.File // nil: /dev/null
	// terminal: stdin is one, and becomes the controlling terminal.
	terminal bool
}

// command is a program that was started, the leader of a session (setsid(2))
// and process group of its own.
type command struct {
	*reaper.Process
	s    *session
	mark string // empty for what isn't a tool's
}

// start starts a program; its errors are [*wire.Error]. The files remain the
// caller's.
func (s *session) start(p program) (*command, error) {
	env := s.env
	if len(p.env) > 0 {
		env = withVariables(s.env, p.env)
	}
	path, dir, err := s.locate(&p, env)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c := &command{s: s}
	if p.tool {
		c.mark = s.owner + "." + strconv.FormatUint(s.started.Add(1), 10)
		env = append(slices.Clip(env), reaper.MarkEnv+"="+c.mark)
	}
	var files []uintptr
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f == nil {
			f = s.null
		}
		files = append(files, f.Fd())
	}
	c.Process, err = s.reaper.Start(path, p.argv, &syscall.ProcAttr{
		Dir: p.cwd, Env: env, Files: files,
		// Should this process be killed, its children are too; what is further
		// below is found by its mark (reap.KillStray).
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.terminal, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return nil, startError(err, p, path)
	}
	preferForOOM(c.Process)
	return c, nil
}

// locate finds the file of a program, and opens its working directory, by whose
// descriptor it is named in p from then on; dir is nil where p names none.
func (s *session) locate(p *program, env []string) (path string, dir *os.File, err error) {
	if s.view != nil {
		if p.argv = slices.Clone(p.argv); strings.Contains(p.argv[0], "/") {
			p.argv[0] = s.view.Source(p.argv[0])
		}
	}
	if p.cwd != "" {
		if dir, err = s.directory(p.cwd); err != nil {
			return "", nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "cwd " + err.Error()}
		}
		p.cwd = dir.Name()
	}
	if path, err = lookUp(p.argv[0], env); err != nil {
		dir.Close()
		return "", nil, err
	}
	return path, dir, nil
}

// directory opens one that a program is to work in.
func (s *session) directory(p string) (*os.File, error) {
	if s.view != nil {
		return s.view.Directory(p)
	}
	return workdir.Open(p)
}

// end ends the command and all that it started: SIGTERM for its group, and
// SIGKILL for what is left when the grace is over.
func (c *command) end() {
	// A process that leaves the group and loses its parent is known from now on.
	below := map[int]uint64{}
	if list, err := reaper.Scan(); err == nil {
		for _, i := range reaper.Descendants(list, c.Pid) {
			below[i.Pid] = i.Start
		}
	}
	mine := func(list []reaper.Info) []reaper.Info { return c.pick(list, below) }
	_ = c.SignalGroup(unix.SIGTERM)
	over := time.NewTimer(grace)
	defer over.Stop()
	done := c.Done()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
waiting:
	for {
		select {
		case <-over.C:
			break waiting
		case <-done:
			done = nil
		case <-tick.C:
			if done != nil {
				continue
			}
		}
		if done == nil {
			if list, err := reaper.Scan(); err == nil && !anyAlive(mine(list)) {
				break waiting // KillAll looks again
			}
		}
	}
	c.s.reaper.KillAll(killWithin, mine)
}

// left counts the processes of the command that run.
func (c *command) left() (n int) {
	list, err := reaper.Scan()
	if err != nil {
		return 0
	}
	for _, i := range c.pick(list, nil) {
		if !i.Ended() {
			n++
		}
	}
	return n
}

// ending is how long a process may take to end after its command, as the ssh of
// `git fetch` does: until then it isn't told as one that still runs.
const ending = 50 * time.Millisecond

// leftFor is left as it is after a while, or as soon as nobody is left.
func (c *command) leftFor(while time.Duration) int {
	over := time.Now().Add(while)
	for pause := time.Millisecond; ; pause *= 2 {
		n := c.left()
		rest := time.Until(over)
		if n == 0 || rest <= 0 {
			return n
		}
		time.Sleep(min(pause, rest))
	}
}

func anyAlive(list []reaper.Info) bool {
	return slices.ContainsFunc(list, func(i reaper.Info) bool { return !i.Ended() })
}

// pick chooses, of what runs below this process, what belongs to the command:
// itself, its session, those that were seen below it, those that carry its
// mark, and whatever is below these.
func (c *command) pick(list []reaper.Info, seen map[int]uint64) []reaper.Info {
	var mine []reaper.Info
	has := map[int]bool{}
	add := func(i reaper.Info) {
		if !has[i.Pid] {
			has[i.Pid] = true
			mine = append(mine, i)
		}
	}
	for _, i := range reaper.Descendants(list, os.Getpid()) {
		start, known := seen[i.Pid]
		if i.Pid == c.Pid || i.Session == c.Pid || known && start == i.Start ||
			c.mark != "" && !has[i.Pid] && reaper.Mark(i.Pid) == c.mark {
			add(i)
			for _, d := range reaper.Descendants(list, i.Pid) {
				add(d)
			}
		} else if i.Ended() && !c.s.reaper.Started(i.Session) {
			add(i) // its mark is gone; it isn't of another command that runs
		}
	}
	return mine
}

// how tells an exit code as a shell does, and the signal's name if one ended it.
func how(status unix.WaitStatus) (code int, signal string) {
	if status.Signaled() {
		name := unix.SignalName(status.Signal())
		if name == "" {
			name = fmt.Sprintf("signal %d", status.Signal())
		}
		return 128 + int(status.Signal()), name
	}
	return status.ExitStatus(), ""
}
