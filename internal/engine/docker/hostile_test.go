package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	composetypes "github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/volume"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// engineOf is an engine whose socket a handler serves.
func engineOf(t testing.TB, h http.Handler) *Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	e, err := New(t.Context(), Options{Host: "unix://" + path, WithoutLimits: true, CgroupV1: true, Compared: engine.Compared{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.opts.Compared.Keep("p", "w", startOf(hostileID, neverFinished)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// fill sets all fields of a value that JSON shows, so that each can be changed.
func fill(v reflect.Value, depth int) {
	if depth > 5 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if fill(value, depth+1); key.Kind() == reflect.String {
			key.SetString("x")
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(1)
	}
}

// full is the JSON of a value of that type with all that it can have, and set on top of it.
func full[T any](set func(*T)) any {
	var v T
	fill(reflect.ValueOf(&v).Elem(), 0)
	set(&v)
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

// hostileEngine answers with documents by the end of the path.
type hostileEngine map[string]any

const hostileID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (h hostileEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Api-Version", "1.47")
	if h["/v4.0.0/libpod/info"] != nil {
		w.Header().Set("Libpod-Api-Version", "4.3.1")
	}
	path := r.URL.Path
	if _, rest, ok := strings.Cut(strings.TrimPrefix(path, "/v"), "/"); ok && strings.HasPrefix(path, "/v1.") {
		path = "/" + rest
	}
	path = strings.ReplaceAll(path, hostileID, "ID")
	switch {
	case strings.HasSuffix(path, "/attach"), strings.HasSuffix(path, "/start") && strings.HasPrefix(path, "/exec"):
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			io.WriteString(conn, "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n\x01\x00\x00\x00\x00\x00\x00\x06READY\n")
			conn.Close()
		}
		return
	case r.Method == http.MethodDelete, strings.HasSuffix(path, "/logs"), strings.HasSuffix(path, "/pause"), strings.HasSuffix(path, "/unpause"):
		w.WriteHeader(http.StatusNoContent)
		return
	}
	doc, ok := h[path]
	if !ok && strings.HasPrefix(path, "/containers/") && strings.HasSuffix(path, "/json") {
		doc, ok = h["/containers/ID/json"]
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(doc)
}

var hostileLabels = map[string]string{
	engine.LabelProject: "p", engine.LabelService: "w", engine.LabelWorkingDir: "/d/.workshop/p", engine.LabelOneOff: "False",
	compose.LabelDirectory: "/d", compose.LabelRole: compose.RoleWorker.String(), compose.LabelConfigHash: "h", engine.LabelComposeHash: "h",
}

// honest is an engine with one project, all of whose answers are full.
func honest() hostileEngine {
	list := full(func(s *container.Summary) {
		s.ID, s.Names, s.State, s.Status, s.Labels = hostileID, []string{"/p-w-1"}, "running", "Up", hostileLabels
		s.HostConfig.NetworkMode = ""
	})
	guard := full(func(s *container.Summary) {
		s.ID, s.Names, s.State, s.Labels = hostileID, []string{"/p-guard-1"}, "running", map[string]string{}
		for k, v := range hostileLabels {
			s.Labels[k] = v
		}
		s.Labels[engine.LabelService], s.Labels[compose.LabelRole] = compose.GuardService, compose.RoleGuard.String()
	})
	return hostileEngine{
		"/_ping":           "OK",
		"/info":            full(func(i *system.Info) { i.OSType, i.Architecture, i.ID, i.RegistryConfig = "linux", "x86_64", "x", nil }),
		"/version":         full(func(v *types.Version) { v.APIVersion = "1.47" }),
		"/containers/json": []any{list, guard},
		"/containers/ID/json": full(func(c *container.InspectResponse) {
			c.ID, c.State.Status, c.State.Running, c.State.StartedAt, c.State.FinishedAt = hostileID, "running", true, "2026-01-01T00:00:00Z", neverFinished
			c.Config.Labels, c.Config.Tty, c.State.Pid, c.State.Dead = hostileLabels, false, 1<<30, false
		}),
		"/containers/ID/exec": map[string]any{"Id": "x"},
		"/containers/ID/wait": map[string]any{"StatusCode": 0},
		"/exec/x/json":        full(func(i *container.ExecInspect) { i.Running = false }),
		"/networks":           []any{full(func(n *network.Summary) { n.Labels = hostileLabels })},
		"/volumes":            full(func(v *volume.ListResponse) { v.Volumes[0].Labels = hostileLabels }),
		"/volumes/x":          full(func(v *volume.Volume) {}),
		"/images/x/json":      full(func(i *image.InspectResponse) {}),
		"/system/df":          full(func(u *types.DiskUsage) { u.Volumes[0].Labels = hostileLabels }),
	}
}

// honestPodman is the same as podman.
func honestPodman() hostileEngine {
	h := honest()
	h["/v4.0.0/libpod/info"] = full(func(i *libpodInfo) { i.Host.OS, i.Host.Arch = "linux", "amd64" })
	h["/v4.0.0/libpod/containers/ID/json"] = map[string]any{"HostConfig": map[string]any{"LogConfig": map[string]any{"Size": "10MB"}}}
	return h
}

// changes calls each with a document in which one object or list is something else.
func changes(doc any, each func(at string, changed any)) {
	others := []any{nil, []any{nil}}
	var walk func(at string, v any, with func(any) any)
	walk = func(at string, v any, with func(any) any) {
		put := func() {
			for i, o := range others {
				each(fmt.Sprintf("%s: %d", at, i), with(o))
			}
		}
		switch v := v.(type) {
		case map[string]any:
			put()
			for key, below := range v {
				walk(at+"."+key, below, func(o any) any {
					c := maps.Clone(v)
					c[key] = o
					return with(c)
				})
			}
		case []any:
			put()
			for i, below := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), below, func(o any) any {
					c := slices.Clone(v)
					c[i] = o
					return with(c)
				})
			}
		}
	}
	walk("", doc, func(o any) any { return o })
}

// hostileCalls are what commands ask an engine for.
func hostileCalls(ctx context.Context, e *Engine) {
	_, _ = e.Info(ctx)
	_, _ = e.Observe(ctx, "p", "x")
	_, _ = e.List(ctx)
	_, _ = e.Foreigners(ctx)
	_, _ = e.Leftovers(ctx)
	_, _ = e.Caches(ctx, true)
	_ = e.RemoveCache(ctx, engine.Cache{Name: "x"})
	_ = e.RemoveLeftover(ctx, engine.Leftover{Kind: engine.LeftoverImage, ID: "x"})
	_, _ = e.Exec(ctx, "p", "w", engine.ExecOptions{Command: []string{"x"}, User: "1"})
	_ = e.Logs(ctx, "p", nil, engine.LogsOptions{})
	_, _ = e.Witness(ctx, "p", "w", "/d")
	_, _ = e.Wait(ctx, "p", "w", "/d")
	_ = e.Crash(ctx, "p", "w", "/d")
	for _, dial := range []func() (io.ReadWriteCloser, error){
		func() (io.ReadWriteCloser, error) { return e.Control(ctx, "p", "/d") },
		func() (io.ReadWriteCloser, error) { return e.Session(ctx, "p", "w", "/d") },
	} {
		if conn, err := dial(); err == nil && conn != nil {
			conn.Close()
		}
	}
	_ = e.said(ctx, hostileID)
	short, cancel := context.WithTimeout(ctx, 5*time.Millisecond) // it waits for the container
	defer cancel()
	c := &compose.Compiled{Project: &composetypes.Project{Name: "p"}, Roles: map[string]compose.Role{"w": compose.RoleWorker}}
	r := &run{e: e, asked: map[string]*creation{}, p: &engine.Plan{Project: "p", Compiled: c, Desired: engine.Desired{Compiled: c}}}
	r.runner = &engine.Runner{Plan: r.p}
	_ = r.alreadyReady(short, engine.Step{Service: "w"}, hostileID)
	_ = r.compareAgain(ctx, engine.Step{Service: "w"}, hostileID, &readiness{made: "{}"})
	_ = r.verdict(ctx, newReadiness(nil), hostileID, "w")
	_ = r.taken(ctx, "p-w-1", io.EOF)
}

// B60: whatever an answer has in the place of one of its objects and lists, no command
// crashes on it, or waits for ever.
func TestHostileAnswers(t *testing.T) {
	for want, h := range map[engine.Flavour]hostileEngine{engine.FlavourDocker: honest(), engine.FlavourPodman: honestPodman()} { // controls
		e := engineOf(t, h)
		if i, err := e.Info(t.Context()); err != nil || i.Flavour != want {
			t.Errorf("%s: got %+v, %v", want, i, err)
		}
		if _, err := e.Leftovers(t.Context()); err != nil {
			t.Error(err)
		}
		if w, err := e.Witness(t.Context(), "p", "w", "/d"); err != nil || !w.LogBounded && want == engine.FlavourPodman {
			t.Errorf("%s: got %+v, %v", want, w, err)
		}
		if code, err := e.Exec(t.Context(), "p", "w", engine.ExecOptions{Command: []string{"x"}}); err != nil || code != 1 {
			t.Errorf("%s: got %d, %v", want, code, err)
		}
	}
	for path, doc := range honestPodman() {
		honest := honest
		if strings.Contains(path, "libpod") || path == "/containers/ID/json" {
			honest = honestPodman
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var current hostileEngine
			e := engineOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) }))
			changes(doc, func(at string, changed any) {
				current, e.info = honest(), nil
				current[path] = changed
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				hostileCalls(ctx, e)
				if ctx.Err() != nil {
					t.Errorf("%s: not ended after 20s", at)
				}
			})
		})
	}
}
