//go:build linux

package e2e

import (
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/e2e/scenario"
)

// TestRecalled: the second command in a worker doesn't ask the engine for it; a worker that
// is paused or was started by something else is what the engine says.
func TestRecalled(t *testing.T) {
	scenario.OnlyDocker(t, "the namespace engine's supervisor is asked by its socket")
	s := scenario.New(t, "limits", "commands reach a worker that was asked for once without the engine")
	var asked atomic.Int32
	s.Env = append(s.Env, "DOCKER_HOST="+engineBehind(s, func(proxy *httputil.ReverseProxy) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/containers/") {
				asked.Add(1)
			}
			proxy.ServeHTTP(w, r)
		})
	}))
	s.Up()
	count := func() int32 {
		t.Helper()
		before := asked.Load()
		if d := s.Expect(0, "exec", "worker", "--", "echo", "here"); !strings.Contains(d.Out, "here") {
			t.Errorf("%s%s", d.Out, d.Err)
		}
		return asked.Load() - before
	}
	if n := count(); n == 0 {
		t.Error("control: the first command asked nothing")
	}
	if n := count(); n != 0 {
		t.Errorf("the second one asked %d times", n)
	}
	id := s.Containers()["worker"].ID
	if err := s.Docker.ContainerPause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if d := s.Run("exec", "worker", "--", "true"); d.Code == 0 || !strings.Contains(d.Err, "paused") {
		t.Errorf("paused: exit code %d, %s", d.Code, d.Err)
	}
	if err := s.Docker.ContainerUnpause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := s.Docker.ContainerRestart(t.Context(), id, container.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := s.Run("exec", "worker", "--", "true"); d.Code != 125 || !strings.Contains(d.Err, "was not compared") {
		t.Errorf("started by something else: exit code %d, %s", d.Code, d.Err)
	}
}
