package toolbox

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/llmdo/workshop/internal/lib/reaper"
	"github.com/llmdo/workshop/internal/toolbox/fetch"
	"github.com/llmdo/workshop/internal/toolbox/files"
	"github.com/llmdo/workshop/internal/toolbox/wire"
	"github.com/llmdo/workshop/tool"
)

// session is one client's use of the toolbox.
type session struct {
	grant   tool.Grant
	workdir string
	lost    error    // why the working directory can't be entered; nil: it was
	env     []string // the worker's
	null    *os.File // /dev/null, for those who get no input
	reaper  *reaper.Reaper
	owner   string // begins the marks of what is started
	started atomic.Uint64
	memory  *budget     // what outputs may keep, together
	outputs outputs     // what they don't keep
	keep    atomic.Bool // an exec has ended: what runs in the background is its own

	// instance names this run of the worker.
	instance string
	// view and dial are those of process mode; nil: the worker has mounts and a
	// network of its own.
	view *files.View
	dial fetch.Dial

	mu   sync.Mutex
	role string // empty until the hello
}

func newSession(grant tool.Grant) (*session, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	owner, err := reaper.Owner()
	if err != nil {
		return nil, err
	}
	workdir, err := os.Getwd()
	if err != nil { // removed: tools then say what they miss
		workdir = ""
	}
	s := &session{grant: grant, workdir: workdir, null: null, reaper: &reaper.Reaper{}, owner: owner, memory: newBudget(keptOutput)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, reaper.MarkEnv+"=") {
			s.env = append(s.env, v)
		}
	}
	return s, nil
}

func (s *session) handle(ctx context.Context, c *wire.Incoming) (any, error) {
	if c.Method == "hello" {
		return s.hello(c.Params)
	}
	s.mu.Lock()
	role := s.role
	s.mu.Unlock()
	if role == "" {
		return nil, &wire.Error{Code: wire.CodeHello, Message: "the first call must be hello"}
	}
	m, ok := methods[c.Method]
	if !ok {
		return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: fmt.Sprintf("unknown method %q", c.Method)}
	}
	if m.role != "" && m.role != role {
		return nil, &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf("a session of role %s has no %s", role, c.Method)}
	}
	return m.run(s, ctx, c)
}

// methods other than hello; without a role they are for every role.
var methods = map[string]struct {
	role string
	run  func(*session, context.Context, *wire.Incoming) (any, error)
}{
	"archive.in":  {RoleExec, (*session).archiveIn},
	"archive.out": {RoleExec, (*session).archiveOut},

	"call":    {RoleTools, (*session).call},
	"check":   {RoleTools, (*session).check},
	"connect": {RoleExec, (*session).connect},
	"exec":    {RoleExec, (*session).exec},
	"mcp":     {RoleTools, (*session).mcp},
	"ping":    {"", func(*session, context.Context, *wire.Incoming) (any, error) { return struct{}{}, nil }},
}

func (s *session) hello(params []byte) (any, error) {
	h, err := parseHello(params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.role != "" {
		return nil, &wire.Error{Code: wire.CodeHello, Message: "hello is called twice"}
	}
	if s.lost != nil && h.Role == RoleTools {
		return nil, s.inWorkdir("")
	}
	s.role = h.Role
	w := Welcome{Version: wire.Version, Workdir: s.workdir}
	if h.Role == RoleTools {
		w.Grant, w.Instance, w.OOMKills = s.grant, s.instance, s.oomKills()
	}
	return w, nil
}

// inWorkdir refuses a path that is relative to a working directory that couldn't
// be entered. What is absolute goes on, so that a person can repair it.
func (s *session) inWorkdir(p string) error {
	if s.lost == nil || path.IsAbs(p) {
		return nil
	}
	return &wire.Error{Code: wire.CodeToolFailed, Message: s.lost.Error()}
}
