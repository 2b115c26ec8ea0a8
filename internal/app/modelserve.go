package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/time/rate"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/model/service"
	"github.com/llmdo/workshop/internal/toolbox/client"
)

// ModelStart is what the command that starts a model says to the process that serves it, on
// its stdin.
type ModelStart struct {
	Project string `json:"project"`
	// Directory is the workshop's; Engine is the name of the one that it is on.
	Directory string `json:"directory"`
	Engine    string `json:"engine"`
	// Endpoint and Context are those of the engine ([EngineOptions]).
	Endpoint string `json:"endpoint,omitempty"`
	Context  string `json:"context,omitempty"`
	Runtime  string `json:"runtime"` // where its socket is
	Key      string `json:"key"`
	// Command starts the server in the room; Wait is how long it may take to be ready.
	Command []string      `json:"command"`
	Wait    time.Duration `json:"wait"`
}

// Paths of the socket that are ours: the server of the model has no such.
const (
	modelStatusPath   = "/.workshop/status"
	modelLoopbackPath = "/.workshop/loopback"
)

// modelAnswer is what these paths answer.
type modelAnswer struct {
	Loopback string `json:"loopback,omitempty"` // HOST:PORT
}

const maxModelStart = 64 << 10 // bytes

// ServeModel is the process that serves a model: it reads a [ModelStart], starts the server
// in its room, prints a line when that is ready, and carries requests to it until the server
// or the room has ended, or the socket is gone. The server ends with it.
func (env *Env) ServeModel(ctx context.Context, in io.Reader, out io.Writer) error {
	err := env.serveModel(ctx, in, out)
	if err != nil {
		fmt.Fprintln(out, firstLine(err)) // who started it shows it, where it wasn't ready
	}
	return err
}

func (env *Env) serveModel(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := undumpable(); err != nil {
		return err
	}
	var start ModelStart
	if err := readStart(in, maxModelStart, &start); err != nil || !filepath.IsAbs(start.Runtime) || start.Key == "" {
		return errStart
	}
	socket := modelSocket(start.Runtime)
	lock, err := lockOwn(ctx, socket, 5*time.Second) // the one before ends, whose socket or room is gone
	if err != nil {
		return err
	}
	defer lock.Close()
	file, err := openModelLog(start.Runtime)
	if err != nil {
		return err
	}
	defer file.Close()
	logs := &modelLines{to: &boundedLog{f: file}}
	room, err := env.enterModel(ctx, &start, logs)
	if err != nil {
		return err
	}
	defer room.session.Close()
	if err := stopModel(start.Runtime); err != nil {
		return err
	}
	l, err := listenOwn(socket)
	if err != nil {
		return err
	}
	defer l.Close()
	sayReady(out)
	g := service.NewGateway(start.Key, room.dial, log.New(logs, "", 0))
	server := modelServer((&modelHost{gateway: g}).handler())
	server.ErrorLog = log.New(logs, "", 0)
	defer server.Close()
	go func() { _ = server.Serve(l) }()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-room.ended:
			return nil
		case <-ctx.Done():
			return nil
		case <-look.C:
			if l.gone() {
				return nil
			}
		}
	}
}

// modelRoom is a session with the room of a model, in which the server runs.
type modelRoom struct {
	session *client.Session
	ended   chan struct{} // the server has
}

// enterModel starts the server, and returns when it is ready.
func (env *Env) enterModel(ctx context.Context, start *ModelStart, logs *modelLines) (*modelRoom, error) {
	e, err := env.Engine(ctx, start.Engine, EngineOptions{
		Lookup: env.Lookup, StateDir: env.StateDir(), CacheDir: env.CacheDir(), Version: env.Version, Project: start.Project,
		Endpoint: start.Endpoint, Context: start.Context,
	})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	conn, err := e.Session(ctx, start.Project, service.Worker, start.Directory)
	if err != nil {
		return nil, err
	}
	room := &modelRoom{ended: make(chan struct{})}
	if room.session, err = client.Open(ctx, conn, "llmdo models"); err != nil {
		return nil, err
	}
	var code int
	var failed error
	output := &slowed{ctx, logs, rate.NewLimiter(maxModelOutput, maxModelOutput)}
	go func() {
		defer close(room.ended)
		code, failed = room.session.Exec(ctx, client.Command{Argv: start.Command, Stdout: output, Stderr: output})
	}()
	late := time.After(start.Wait)
	for wait := 5 * time.Millisecond; !room.healthy(ctx, start.Key); wait = min(2*wait, time.Second) {
		select {
		case <-room.ended:
			err = failed
			if err == nil {
				err = fmt.Errorf("its server ended with exit code %d%s", code, logs.lastWords())
			}
		case <-late:
			err = fmt.Errorf("its server isn't ready after %v%s", start.Wait, logs.lastWords())
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(wait):
			continue
		}
		room.session.Close()
		return nil, err
	}
	return room, nil
}

func (m *modelRoom) dial(ctx context.Context) (net.Conn, error) {
	return m.session.Dial(ctx, service.Port)
}

func (m *modelRoom) healthy(ctx context.Context, key string) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return service.Healthy(ctx, key, m.dial)
}

// modelHost has what is asked of the process itself.
type modelHost struct {
	gateway  *service.Gateway
	mu       sync.Mutex
	loopback string
}

// handler is what the socket serves; each path wants the key.
func (h *modelHost) handler() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, a modelAnswer) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a)
	}
	mux.HandleFunc("GET "+modelStatusPath, func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		answer(w, modelAnswer{h.loopback})
	})
	mux.HandleFunc("POST "+modelLoopbackPath, func(w http.ResponseWriter, _ *http.Request) {
		address, err := h.listen()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w, modelAnswer{address})
	})
	return h.gateway.With("/.workshop/", mux)
}

// maxModelClients bounds the connections to a port that every user may connect to: they would
// take what the socket needs, too.
const maxModelClients = 256

// modelServer hands every request to a handler, which wants the key, and keeps no connection
// that isn't used.
func modelServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: time.Minute, DisableGeneralOptionsHandler: true}
}

// listen serves the model on a port of 127.0.0.1, too, the same each time.
func (h *modelHost) listen() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loopback != "" {
		return h.loopback, nil
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	h.loopback = l.Addr().String()
	server := modelServer(h.gateway)
	go func() { _ = server.Serve(netutil.LimitListener(l, maxModelClients)) }() // it ends with the process
	return h.loopback, nil
}

// openModelLog begins a log anew. It is appended to, also after [boundedLog] has emptied it.
func openModelLog(runtime string) (*os.File, error) {
	return os.OpenFile(modelLog(runtime), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
}

// maxModelOutput is how much a server may print, in bytes in a second: who writes that down is
// not in its room, and not under the room's limits.
const maxModelOutput = 256 << 10

// slowed holds up who writes too much.
type slowed struct {
	ctx  context.Context
	to   io.Writer
	rate *rate.Limiter
}

func (s *slowed) Write(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n := min(len(p)-done, s.rate.Burst())
		if err := s.rate.WaitN(s.ctx, n); err != nil {
			return done, err
		}
		if _, err := s.to.Write(p[done : done+n]); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// modelLines writes what a server prints to a log, line by line, and remembers the last.
type modelLines struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte
	last string
}

func (l *modelLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; len(rest) > 0; {
		n := min(len(rest), maxBrokerLine-len(l.part))
		if i := bytes.IndexByte(rest[:n], '\n'); i >= 0 {
			n = i + 1
		}
		l.part = append(l.part, rest[:n]...)
		if rest = rest[n:]; len(l.part) == maxBrokerLine || l.part[len(l.part)-1] == '\n' {
			l.end()
		}
	}
	return len(p), nil
}

// end writes a line. One that can't be written, as to a disk that is full, is lost: the
// server goes on.
func (l *modelLines) end() {
	if text := strings.TrimRight(string(l.part), "\r\n"); text != "" {
		l.last = text
		_, _ = io.WriteString(l.to, text)
	}
	l.part = l.part[:0]
}

// lastWords is the last line, for an error.
func (l *modelLines) lastWords() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.last
	if len(l.part) > 0 {
		text = string(l.part)
	}
	if text == "" {
		return ""
	}
	return ": " + Printable(clip.Bytes(text, 300))
}
