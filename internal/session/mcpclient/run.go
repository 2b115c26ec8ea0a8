package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocol is the version that is asked for: the newest that begins with
// initialize, which every server knows.
const protocol = "2025-11-25"

// run is one run of a server.
type run struct {
	s       *Server
	process *Process
	conn    *conn
	session *mcp.ClientSession
	last    tail
	said    chan struct{} // closed at the end of its standard error
	keys    atomic.Int64
	calls   chan struct{} // one entry per call
	relist  chan struct{} // the list has changed
	once    sync.Once
}

func (r *run) ended() bool {
	select {
	case <-r.conn.closed:
		return true
	default:
		return false
	}
}

// startRun starts the server, greets it and lists its tools.
func startRun(ctx context.Context, s *Server) (*run, []Tool, error) {
	p, err := s.c.Start(s.life)
	if err != nil {
		return nil, nil, err
	}
	r := &run{s: s, process: p, calls: make(chan struct{}, MaxCalls), relist: make(chan struct{}, 1), said: make(chan struct{})}
	r.conn = newConn(p.Stdout, p.Stdin, func() {
		select {
		case r.relist <- struct{}{}:
		default:
		}
	})
	go func() {
		defer close(r.said)
		if p.Stderr != nil {
			io.Copy(&r.last, p.Stderr)
		}
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "workshop", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{}, // no roots, no sampling, no elicitation
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	r.session, err = client.Connect(ctx, r.conn, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	if err != nil {
		err = r.why(ctx, err)
		r.close()
		return nil, nil, err
	}
	tools, err := r.list(ctx)
	if err != nil {
		err = r.why(ctx, err)
		r.close()
		return nil, nil, err
	}
	go r.watch()
	return r, tools, nil
}

// close ends the run.
func (r *run) close() {
	r.once.Do(func() {
		r.conn.end(ErrClosed)
		r.process.End()
		if r.session != nil {
			r.session.Close()
		}
	})
}

// watch lists again when the server says that its tools have changed, and clears
// up when it has ended.
func (r *run) watch() {
	defer r.close()
	const pause = time.Second // between two lists
	for {
		select {
		case <-r.conn.closed:
			return
		case <-r.relist:
		}
		ctx, cancel := context.WithTimeout(r.s.life, 10*time.Second)
		tools, err := r.list(ctx)
		cancel()
		if err == nil {
			r.s.mu.Lock()
			changed := r.s.run == r && r.s.set(tools)
			r.s.mu.Unlock()
			r.s.tellChanged(changed)
		}
		select {
		case <-r.conn.closed:
			return
		case <-time.After(pause):
		}
	}
}

// list asks for all tools.
func (r *run) list(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	seen := map[string]bool{}
	bad := 0
	cursor := ""
	for pages := 0; ; pages++ {
		p, err := r.page(ctx, cursor)
		if err != nil {
			return nil, err
		}
		for _, raw := range p.Tools {
			if len(tools) == MaxTools {
				r.s.warn("it has more than %d tools, the others aren't offered", MaxTools)
				return tools, nil
			}
			t, err := take(raw)
			if err == nil && seen[t.Name] {
				err = fmt.Errorf("the tool %s is listed twice", t.Name)
			}
			if err != nil {
				if bad++; bad > MaxTools {
					r.s.warn("it has more than %d tools that can't be offered; those after them aren't offered either", MaxTools)
					return tools, nil
				}
				r.s.warn("%v; it isn't offered", err)
				continue
			}
			seen[t.Name] = true
			tools = append(tools, t)
		}
		switch {
		case p.NextCursor == "":
			return tools, nil
		case pages+1 == MaxPages || p.NextCursor == cursor:
			r.s.warn("its list of tools has more than %d pages; the tools after them aren't offered", pages+1)
			return tools, nil
		}
		cursor = p.NextCursor
	}
}

func (r *run) page(ctx context.Context, cursor string) (*page, error) {
	key := r.key()
	answer, forget := r.conn.expect(key, `{"tools":[]}`, nil)
	defer forget()
	params := &mcp.ListToolsParams{Cursor: cursor, Meta: mcp.Meta{"progressToken": key}}
	if _, err := r.session.ListTools(ctx, params); err != nil {
		return nil, err
	}
	p := new(page)
	if err := json.Unmarshal(answer(), p); err != nil {
		return nil, fmt.Errorf("its list of tools can't be read: %w", err)
	}
	return p, nil
}

// key names a request for conn.
func (r *run) key() string { return "w" + strconv.FormatInt(r.keys.Add(1), 10) }

// why says why a request failed, with what the server said last.
func (r *run) why(ctx context.Context, err error) error {
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &answer):
		return fmt.Errorf("it answers: %s", clean(answer.Message, MaxDescription))
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !r.ended():
		return err
	}
	return r.death()
}

// death says how the server ended.
func (r *run) death() error {
	why := r.conn.why()
	if errors.Is(why, ErrClosed) {
		return ErrClosed
	}
	text := "it has ended"
	if why != nil && !errors.Is(why, io.EOF) {
		text = clean(why.Error(), MaxDescription)
	} else {
		exit := make(chan error, 1)
		go func() { exit <- r.process.Wait() }()
		t := time.NewTimer(endTime)
		defer t.Stop()
		select {
		case err := <-exit:
			if err != nil {
				text = hasEnded(clean(err.Error(), MaxDescription))
			}
			select {
			case <-r.said:
			case <-t.C: // somebody else holds it open
			}
		case <-t.C:
			text = "it closed its standard output"
		}
	}
	if last := r.last.String(); last != "" {
		text += "; it said last: " + last
	}
	return errors.New(text)
}

// hasEnded says why a server ended, and "ended" once.
func hasEnded(why string) string {
	if strings.HasPrefix(why, "ended") {
		return "it has " + why
	}
	return "it has ended: " + why
}

// tail keeps the end of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 1 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p[max(0, len(p)-tailSize):]...)
	if n := len(t.b); n > tailSize {
		t.b = append(t.b[:0], t.b[n-tailSize:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return oneLine(string(t.b), tailSize)
}
