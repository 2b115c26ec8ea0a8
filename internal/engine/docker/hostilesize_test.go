package docker

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/jsonmessage"
)

// badServer answers each request with what write sends.
func badServer(t *testing.T, write func(net.Conn)) *Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.sock")
	acceptAt(t, path, func(conn net.Conn) {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second)) // in place of a test that hangs
		if _, err := conn.Read(make([]byte, 4096)); err == nil {
			write(conn)
		}
	})
	e, err := New(t.Context(), Options{Host: "unix://" + path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	e.cli.NegotiateAPIVersionPing(types.Ping{APIVersion: "1.47"}) // in place of one that write answers
	return e
}

// endless writes a head, and then the same until the other side has enough.
func endless(head, text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, err := io.WriteString(conn, head)
		for more := strings.Repeat(text, 1+32<<10/len(text)); err == nil; {
			_, err = io.WriteString(conn, more)
		}
	}
}

const (
	okHead      = "HTTP/1.1 200 OK\r\nApi-Version: 1.47\r\nContent-Type: application/json\r\n\r\n"
	upgradeHead = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
)

// B60: an answer costs a bounded amount of memory, and ends.
func TestHostileSizes(t *testing.T) {
	list := func(ctx context.Context, e *Engine) error {
		_, err := e.cli.ContainerList(ctx, container.ListOptions{})
		return e.explain(err)
	}
	attach := func(ctx context.Context, e *Engine) error {
		_, err := e.attach(ctx, "x")
		return err
	}
	framed := func(ctx context.Context, e *Engine) error {
		conn, err := e.attach(ctx, "x")
		if err != nil {
			return err
		}
		defer conn.Close()
		return copyFrames(io.Discard, io.Discard, conn.Reader, false)
	}
	for _, tc := range []struct {
		name  string
		write func(net.Conn)
		call  func(context.Context, *Engine) error
		want  string // in the error; "": there is none
		most  uint64 // MiB that are allocated
	}{
		{"a number", endless(okHead+"[", "1"), list, "its answer has more than 32 MiB", 256},
		{"a list", func(conn net.Conn) { io.WriteString(conn, okHead+"[{}"+strings.Repeat(",{}", 1<<20)+"]") }, list,
			"its answer has more than 32 MiB, or 524288 values", 64},
		{"nesting", endless(okHead, "["), list, "exceeded max depth", 256},
		{"headers", endless("HTTP/1.1 200 OK\r\nX: ", "x"), list, "the head of its answer has more than 64 KiB", 16},
		{"headers of a plain request", endless("HTTP/1.1 200 OK\r\nX: ", "x"), func(ctx context.Context, e *Engine) error {
			_, err := e.inspectFast(ctx, "x")
			return err
		}, "the head of its answer has more than 64 KiB", 16},
		{"headers of a stream", endless("HTTP/1.1 101 UPGRADED\r\n", "X: x\r\n"), attach, "the head of its answer has more than 64 KiB", 16},
		{"interim responses", endless("", "HTTP/1.1 103 Early Hints\r\n\r\n"), list, "", 16},
		{"the message of an error", endless("HTTP/1.1 500 Failed\r\n\r\n", "x"), attach, "in place of a stream", 16},
		{"a frame that says that it has 4 GiB", func(conn net.Conn) {
			io.WriteString(conn, upgradeHead+"\x01\x00\x00\x00\xff\xff\xff\xffREADY")
		}, framed, "", 16},
		{"an error that says that it has 4 GiB", endless(upgradeHead+"\x03\x00\x00\x00\xff\xff\xff\xff", "x"), framed, "the engine: xxxx", 16},
		{"a message of a pull", endless(okHead+`{"status":"`, "x"), func(ctx context.Context, e *Engine) error {
			conn, err := e.cli.Dialer()(ctx)
			if err != nil {
				return err
			}
			defer conn.Close()
			io.WriteString(conn, "x")
			io.ReadFull(conn, make([]byte, len(okHead)))
			return messages(conn, func(*jsonmessage.JSONMessage) {})
		}, "more than 1 MiB", 16},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := badServer(t, tc.write)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := tc.call(ctx, e)
			runtime.ReadMemStats(&after)
			if ctx.Err() != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %.300v (%v), want %q", err, ctx.Err(), tc.want)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > tc.most {
				t.Errorf("it took %d MiB, want at most %d", got, tc.most)
			}
		})
	}
}

// A redirect of any method and status is refused: what is sent may be secret.
func TestRedirectIsRefused(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s %s arrived elsewhere", r.Method, r.URL) }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, status) })
		far := httptest.NewServer(h)
		defer far.Close()
		tcp, err := New(t.Context(), Options{Host: "tcp://" + far.Listener.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range []*Engine{engineOf(t, h), tcp} {
			if _, err := e.Info(t.Context()); err == nil || !strings.Contains(err.Error(), "it redirects elsewhere, which no engine does") {
				t.Errorf("%d: got %v", status, err)
			}
			_, err := e.cli.ContainerCreate(t.Context(), &container.Config{Env: []string{"SECRET=x"}}, nil, nil, nil, "x")
			if err == nil || !strings.Contains(err.Error(), "it redirects elsewhere, which no engine does") {
				t.Errorf("%d: got %v", status, err)
			}
			if _, err := e.attach(t.Context(), "x"); err == nil {
				t.Errorf("%d: attached", status)
			}
		}
	}
}

// Each answer has its time; streams have as much as they take.
func TestBoundOf(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		want         *answerError
	}{
		{"GET", "/v1.47/containers/json", errLateAnswer},
		{"GET", "/v1.47/containers/x/archive", errLateDone},
		{"PUT", "/v1.47/containers/x/archive", nil},
		{"GET", "/v1.47/containers/x/logs", nil},
		{"POST", "/v1.47/containers/x/wait", nil},
		{"POST", "/v1.47/build", nil},
		{"POST", "/v1.47/images/create", nil},
		{"GET", "/v1.47/system/df", errLateDone},
		{"POST", "/v1.47/containers/create", errLateDone},
		{"DELETE", "/v1.47/containers/x", errLateDone},
	} {
		if _, got := boundOf(httptest.NewRequest(tc.method, tc.path, nil)); got != tc.want {
			t.Errorf("%s %s: got %v, want %v", tc.method, tc.path, got, tc.want)
		}
	}
}

// B60: an answer that drips, or doesn't come, ends by its time, at the head as in the body,
// and the person gets one error that says so.
func TestHostileDrip(t *testing.T) {
	late := &answerError{"no answer within 50ms"}
	for name, write := range map[string]func(net.Conn){
		"nothing": func(conn net.Conn) { io.Copy(io.Discard, conn) },
		"body": func(conn net.Conn) {
			_, err := io.WriteString(conn, okHead+"[")
			for err == nil {
				time.Sleep(5 * time.Millisecond)
				_, err = io.WriteString(conn, " ")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := badServer(t, write)
			e.endpoint.http.Transport.(*bounded).bound = func(*http.Request) (time.Duration, *answerError) { return 50 * time.Millisecond, late }
			_, err := e.cli.ContainerList(t.Context(), container.ListOptions{})
			want := "no Docker Engine answers at " + e.endpoint.host + ": no answer within 50ms: " + restartHint
			if err = e.explain(err); err == nil || err.Error() != want {
				t.Errorf("got %v, want %v", err, want)
			}
		})
	}
	t.Run("less time", func(t *testing.T) {
		e := badServer(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		want := "no Docker Engine answers at " + e.endpoint.host + ": no answer in time: " + restartHint
		if _, err := e.Info(ctx); err == nil || err.Error() != want {
			t.Errorf("got %v, want %v", err, want)
		}
	})
	t.Run("stream", func(t *testing.T) {
		e := badServer(t, func(conn net.Conn) { io.Copy(io.Discard, conn) })
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := e.attach(ctx, "x"); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
	})
}

// A version that no engine has crashes nothing, and an old one is refused.
func TestHostileVersions(t *testing.T) {
	for version, want := range map[string]string{
		"": "is too old: it speaks API 1.24, workshop needs 1.41", "1.2": "is too old: it speaks API 1.2,", "x": "doesn't speak Docker's API", "-1": "doesn't speak Docker's API",
		"99999999999999999999999.1": "", "1.9999999999999999999999": "",
	} {
		h := honest()
		e := engineOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&withVersion{w, version}, r) }))
		_, err := e.Info(t.Context())
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", version, err, want)
		}
	}
}

// withVersion answers with another version of the API.
type withVersion struct {
	http.ResponseWriter
	version string
}

func (w *withVersion) Header() http.Header {
	h := w.ResponseWriter.Header()
	if h.Get("Api-Version") != "" {
		h.Set("Api-Version", w.version)
	}
	return h
}

// What is in the frames of a stream goes where they say, however it arrives.
func TestCopyFrames(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	frame := func(stream byte, text string) string {
		n := len(text)
		return string([]byte{stream, 0, 0, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}) + text
	}
	for _, tc := range []struct {
		name, in, out, err, problem string
		stamped                     bool
	}{
		{name: "two streams", in: frame(1, "a") + frame(2, "b") + frame(0, "c") + frame(1, ""), out: "ac", err: "b"},
		{name: "longer than the buffer", in: frame(1, long) + frame(2, "b"), out: long, err: "b"},
		{name: "no frame", in: ""},
		{name: "half a head", in: frame(1, "a") + "\x01\x00", out: "a"},
		{name: "half a frame", in: frame(1, "abc")[:9], out: "a"},
		{name: "the engine's error", in: frame(1, "a") + frame(3, "no\x1b[2J\n"), out: "a", problem: "the engine: no\x1b[2J"},
		{name: "times", stamped: true, in: frame(1, "1Z a\n") + frame(1, "2Z \n") + frame(1, "3Z b\n"), out: "1Z a\n2Z \n3Z b\n"},
		{name: "times of parts of a line", stamped: true, in: frame(1, "1Z a") + frame(1, "2Z b c") + frame(1, "3Z \n") + frame(1, "4Z d\n"), out: "1Z ab c\n4Z d\n"},
		{name: "times of parts of two streams", stamped: true, in: frame(1, "1Z a") + frame(2, "2Z b") + frame(1, "3Z c\n") + frame(2, "4Z d\n"), out: "1Z ac\n", err: "2Z bd\n"},
		{name: "a part that is half a time", stamped: true, in: frame(1, "1Z a") + frame(1, "2Z"), out: "1Z a"},
		{name: "parts without times", in: frame(1, "a b") + frame(1, "c d\n"), out: "a bc d\n"},
		{name: "an unknown stream", in: frame(7, "a"), problem: "the engine sends output of an unknown stream, 7"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(tc.in), &oneByte{tc.in}} {
				var out, errOut bytes.Buffer
				problem := ""
				if err := copyFrames(&out, &errOut, r, tc.stamped); err != nil {
					problem = err.Error()
				}
				if out.String() != tc.out || errOut.String() != tc.err || problem != tc.problem {
					t.Errorf("got %.40q, %q, %q; want %.40q, %q, %q", out.String(), errOut.String(), problem, tc.out, tc.err, tc.problem)
				}
			}
		})
	}
}

// oneByte is a reader of one byte at a time.
type oneByte struct{ rest string }

func (o *oneByte) Read(p []byte) (int, error) {
	if o.rest == "" {
		return 0, io.EOF
	}
	p[0], o.rest = o.rest[0], o.rest[1:]
	return 1, nil
}
