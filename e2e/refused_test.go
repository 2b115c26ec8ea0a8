//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// engineBehind is the real engine behind a socket of its own, which a handler
// serves with the proxy. It returns the new DOCKER_HOST.
func engineBehind(s *scenario.Scenario, handler func(*httputil.ReverseProxy) http.Handler) string {
	s.Helper()
	real, ok := strings.CutPrefix(s.Docker.DaemonHost(), "unix://")
	if !ok {
		s.Fatalf("the engine at %s is no unix socket", s.Docker.DaemonHost())
	}
	path := filepath.Join(s.TempDir(), "docker.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		s.Fatal(err)
	}
	server := &http.Server{Handler: handler(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", real)
		}},
	})}
	go func() { _ = server.Serve(l) }()
	s.Cleanup(func() { server.Close() })
	return "unix://" + path
}

// lesserEngine changes one answer: what /info says of a limit or an option.
func lesserEngine(s *scenario.Scenario, change func(info map[string]any)) string {
	s.Helper()
	return engineBehind(s, func(proxy *httputil.ReverseProxy) http.Handler {
		proxy.ModifyResponse = func(r *http.Response) error {
			if !strings.HasSuffix(r.Request.URL.Path, "/info") {
				return nil
			}
			info := map[string]any{}
			if err := json.NewDecoder(r.Body).Decode(&info); err != nil {
				return err
			}
			r.Body.Close()
			change(info)
			b, err := json.Marshal(info)
			r.Body = io.NopCloser(bytes.NewReader(b))
			r.ContentLength = int64(len(b))
			r.Header.Set("Content-Length", strconv.Itoa(len(b)))
			return err
		}
		return proxy
	})
}

func TestB05_EngineWithoutALimitIsRefused(t *testing.T) {
	scenario.OnlyDocker(t, "what an engine says of itself in /info")
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"MemoryLimit", false, "memory: a worker's memory is limited (B5)"},
		{"SwapLimit", false, "swap: no swap beyond the memory limit (B5)"},
		{"CpuCfsQuota", false, "cpu: a worker's cpu time is limited (B5)"},
		{"CpuCfsPeriod", false, "cpu: a worker's cpu time is limited (B5)"},
		{"PidsLimit", false, "pids: the number of a worker's processes is limited (B5)"},
		{"SecurityOptions", []string{"name=apparmor"}, "seccomp: system calls are filtered (B2)"},
	} {
		t.Run(c.key, func(t *testing.T) {
			s := scenario.New(t, "none", "an engine that can't enforce a limit is refused by the promise's number, and nothing was started")
			s.Env = append(s.Env, "DOCKER_HOST="+lesserEngine(s, func(info map[string]any) {
				if _, ok := info[c.key]; !ok {
					t.Errorf("the engine says nothing of %s", c.key)
				}
				info[c.key] = c.value
			}))
			if d := s.Expect(4, "up"); !strings.Contains(d.Err, c.want) || strings.Count(d.Err, "(B") != 1 {
				t.Errorf("the error is not %q alone:\n%s", c.want, d.Err)
			}
			if l := left(s); l != nil {
				t.Errorf("it left %v", l)
			}
		})
	}
	s := scenario.New(t, "none", "control: the same engine through the same socket, unchanged, is good enough")
	s.Env = append(s.Env, "DOCKER_HOST="+lesserEngine(s, func(map[string]any) {}))
	s.Up()
	s.Sees("worker", "interfaces -> lo")
}
