package supervisor

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/api"
	"github.com/llmdo/workshop/internal/engine/namespace/supervisor/logfile"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/reaper"
)

// maxStarts is how many containers are started at a time; more aren't faster.
const maxStarts = 4

// restTime is after how long without a request memory of requests is given back: half a
// megabyte, and a machine may have a hundred supervisors that wait.
const restTime = 2 * time.Second

// maxServices bounds the services of a supervisor.
const maxServices = 4096

// Supervisor is the state of a `workshop-init supervise` process.
type Supervisor struct {
	dir    string
	reaper *reaper.Reaper
	begin  starter
	errors io.Writer // supervisor.log
	lock   *os.File  // held for the lifetime of the process; nil in tests without one
	digest string    // of the program, as its caller says
	// attached: it ends with its caller, and after that nobody needs its state.
	attached bool

	findGroups func() (*cgroup.Parent, error)
	groups     *cgroup.Parent // nil: no limit can be enforced, see noGroups
	noGroups   error
	prefix     string // of the names of our groups, unique to the project

	program string        // of children: this one
	starts  chan struct{} // bounds concurrent starts

	mu       sync.Mutex
	services map[string]*service
	numbers  uint64 // of groups
	changes  uint64
	ending   bool
	ended    chan struct{} // closed once everything has stopped, after ending

	creating sync.Mutex   // one service at a time
	busy     atomic.Int64 // requests in progress
	rest     *time.Timer  // gives memory back once no request came for restTime

	saving sync.Mutex
	saved  uint64 // changes contained in state.json

	resolv resolvCopy
}

// service is one container, whether it runs or not.
type service struct {
	c    spec.Container
	form json.RawMessage // JSON of c, for state.json

	// turn holds one token, whose holder may change the service. Used only by
	// the holder:
	turn  chan struct{}
	log   *logfile.Writer
	ports []inbound

	// Under the Supervisor's mu:
	state State
	run   *run          // the latest; nil: not started by this supervisor
	halt  chan struct{} // closed by stop; nil: it shall not run
	delay time.Duration // before the next restart
	gone  bool          // removed
}

// State is the visible state of a service besides its spec.
type State struct {
	State     api.State `json:"state"`
	Ready     bool      `json:"ready"`
	ExitCode  int       `json:"exit_code"`
	OOMKilled bool      `json:"oom_killed,omitempty"`
	Created   time.Time `json:"created"`
	Started   time.Time `json:"started,omitzero"`
	Finished  time.Time `json:"finished,omitzero"`
	Restarts  int       `json:"restarts,omitempty"`
	Joined    time.Time `json:"joined,omitzero"`
}

func (s *service) seen() api.Seen {
	return api.Seen{
		Container: s.c, State: s.state.State, Ready: s.state.Ready, ExitCode: s.state.ExitCode, OOMKilled: s.state.OOMKilled,
		Created: s.state.Created, Started: s.state.Started, Finished: s.state.Finished, Restarts: s.state.Restarts, Joined: s.state.Joined,
	}
}

func newSupervisor(dir string, errors io.Writer) *Supervisor {
	return &Supervisor{
		dir: dir, errors: errors, reaper: &reaper.Reaper{}, begin: contained, findGroups: cgroup.Find,
		rest: time.AfterFunc(restTime, debug.FreeOSMemory), services: map[string]*service{}, starts: make(chan struct{}, maxStarts), ended: make(chan struct{}),
	}
}

// newService opens the log of a container.
func (s *Supervisor) newService(c spec.Container, state State) (*service, error) {
	form, err := json.Marshal(&c)
	if err != nil {
		return nil, err
	}
	log, err := logfile.Open(s.logDir(c.Service), c.Log.MaxSize, c.Log.MaxFiles)
	if err != nil {
		return nil, fmt.Errorf("the log of %s: %w", c.Service, err)
	}
	sv := &service{c: c, form: form, turn: make(chan struct{}, 1), log: log, state: state}
	sv.turn <- struct{}{}
	return sv, nil
}

func (s *Supervisor) logDir(service string) string { return s.dir + "/" + api.LogDir + "/" + service }

// say writes a line to supervisor.log.
func (s *Supervisor) say(format string, args ...any) {
	fmt.Fprintf(s.errors, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

// now returns the time as it is after a JSON round trip.
func now() time.Time { return time.Now().UTC().Round(0) }

// mine takes the turn of a service, which must exist. done returns the turn.
func (s *Supervisor) mine(name string) (*service, *api.Error) {
	s.mu.Lock()
	sv := s.services[name]
	s.mu.Unlock()
	if sv == nil {
		return nil, unknown(name)
	}
	<-sv.turn
	s.mu.Lock()
	gone := sv.gone
	s.mu.Unlock()
	if gone {
		sv.done()
		return nil, unknown(name)
	}
	return sv, nil
}

func (sv *service) done() { sv.turn <- struct{}{} }

func unknown(name string) *api.Error {
	return failure(api.CodeUnknown, "there is no service %q", clip.Bytes(name, maxText))
}

// failure returns an error for a client.
func failure(code api.Code, format string, args ...any) *api.Error {
	return &api.Error{Code: code, Message: clip.Bytes(fmt.Sprintf(format, args...), maxText)}
}

// maxText bounds the text of an error, which may quote the request.
const maxText = 4 << 10
