//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/engine"
)

// uncompared is what a command says in a worker that was not compared since its start.
const uncompared = "workshop: error: worker worker was not compared with what was asked for since its start\nworkshop: hint: compare it: `workshop up`\n"

// commandsRefuse checks that nothing runs in the worker.
func commandsRefuse(s *scenario.Scenario) {
	s.Helper()
	for _, tt := range []struct {
		code int
		args []string
	}{
		{125, []string{"exec", "worker", "--", "true"}},
		{125, []string{"exec", "--user", strconv.Itoa(scenario.UID), "worker", "--", "true"}},
		{4, []string{"cp", "workshop.yaml", "worker:/tmp/"}},
		{4, []string{"cp", "worker:/etc/passwd", "copied"}},
		{1, []string{"tools", "worker", "--no-up"}},
	} {
		if d := s.Run(tt.args...); d.Code != tt.code || tt.code != 1 && d.Err != uncompared {
			s.Errorf("%q: exit code %d, want %d with %q:\n%s", tt.args, d.Code, tt.code, uncompared, d.Err)
		}
	}
	says(s, s.Expect(0, "ps"), "worker was not compared with what was asked for since its start: `workshop up` does it\n")
}

// keptAndCompared checks that `up` goes on with the worker as it is.
func keptAndCompared(s *scenario.Scenario) {
	s.Helper()
	before := s.Containers()["worker"].ID
	s.Up()
	if id := s.Containers()["worker"].ID; id != before {
		s.Errorf("the worker was recreated")
	}
	s.Expect(0, "exec", "worker", "--", "true")
	if d := s.Expect(0, "ps"); strings.Contains(d.Out+d.Err, "was not compared") {
		s.Errorf("ps after up:\n%s%s", d.Out, d.Err)
	}
}

// muted is a service of which an engine passes on nothing that its container says. One that
// lies drops the limit of processes from the creation, and says that it has it.
type muted struct {
	service string
	lies    bool
	id      atomic.Value  // of the container
	asked   atomic.Value  // the limit
	until   chan struct{} // closed: no more
}

// muteEngine is the real engine, in which a service may be muted.
func muteEngine(s *scenario.Scenario, now *atomic.Pointer[muted]) string {
	s.Helper()
	says := regexp.MustCompile(`/containers/([0-9a-f]{64})/(attach|logs)$`)
	of := func(r *http.Request) (m *muted, what string) {
		m = now.Load()
		if at := says.FindStringSubmatch(r.URL.Path); m != nil && at != nil && at[1] == m.id.Load() {
			what = at[2]
		}
		return m, what
	}
	creates := func(m *muted, r *http.Request) bool {
		return m != nil && strings.HasSuffix(r.URL.Path, "/containers/create") && r.URL.Query().Get("name") == s.Project+"-"+m.service+"-1"
	}
	return engineBehind(s, func(proxy *httputil.ReverseProxy) http.Handler {
		proxy.ModifyResponse = func(r *http.Response) error {
			m, what := of(r.Request)
			switch at := r.Request.URL.Path; {
			case m == nil:
			case creates(m, r.Request) && r.StatusCode == http.StatusCreated:
				return rewrite(&r.Body, &r.ContentLength, r.Header, func(c created) { m.id.Store(c["Id"]) })
			case what == "attach" && r.StatusCode == http.StatusSwitchingProtocols:
				r.Body = silence{r.Body.(io.ReadWriteCloser), m.until}
			case m.asked.Load() != nil && r.StatusCode == http.StatusOK && strings.Contains(at, "/containers/") && strings.HasSuffix(at, "/json") && !strings.HasSuffix(at, "/containers/json"):
				return rewrite(&r.Body, &r.ContentLength, r.Header, func(c created) {
					labels, _ := c["Config"].(map[string]any)["Labels"].(map[string]any)
					if labels[engine.LabelService] == m.service && labels[engine.LabelProject] == s.Project {
						c.host()["PidsLimit"] = m.asked.Load()
					}
				})
			}
			return nil
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m, what := of(r)
			switch {
			case what == "logs":
				<-m.until
			case creates(m, r) && m.lies:
				if err := rewrite(&r.Body, &r.ContentLength, r.Header, func(c created) {
					m.asked.Store(c.host()["PidsLimit"])
					delete(c.host(), "PidsLimit")
				}); err != nil {
					http.Error(w, err.Error(), http.StatusBadRequest)
					return
				}
			}
			proxy.ServeHTTP(w, r)
		})
	})
}

// silence is a connection that says nothing, until it ends.
type silence struct {
	io.ReadWriteCloser
	until <-chan struct{}
}

func (c silence) Read([]byte) (int, error) { <-c.until; return 0, io.EOF }

// rewrite changes a body of JSON.
func rewrite(body *io.ReadCloser, length *int64, header http.Header, change func(created)) error {
	var c created
	d := json.NewDecoder(*body)
	d.UseNumber()
	if err := d.Decode(&c); err != nil {
		return err
	}
	change(c)
	text, err := json.Marshal(c)
	*body, *length = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	header.Set("Content-Length", strconv.Itoa(len(text)))
	return err
}

// killedUp starts `up` and kills it at a moment.
func killedUp(s *scenario.Scenario, what string, moment func() bool) {
	s.Helper()
	cmd := s.Command(context.Background(), "up")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Eventually(what, moment)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if cmd.ProcessState.Exited() {
		s.Fatalf("up ended before it was killed:\n%s", &errs)
	}
}

// An `up` that is killed once a container runs, and before it compared that.
func TestUpIsKilledBeforeItCompares(t *testing.T) {
	s := scenario.New(t, "restricted", "a worker that was started and never compared takes no command, and the next up compares what was not")
	if !scenario.DockerAPI() { // where a worker is compared once it is ready, for which the guard answers it
		s.Up()
		s.Kill("guard", "SIGSTOP")
		s.Remove("worker")
		killedUp(s, "the worker runs", func() bool { return runs(s, "worker") })
		s.Kill("guard", "SIGCONT")
		s.Eventually("the worker is ready", func() bool { return strings.Contains(s.Logs("worker"), "READY") })
		commandsRefuse(s)
		keptAndCompared(s)
		return // a container can't differ from what its supervisor has of it
	}
	var now atomic.Pointer[muted]
	s.Env = append(s.Env, "DOCKER_HOST="+muteEngine(s, &now))
	for _, tt := range []struct {
		service string
		lies    bool
	}{{"worker", false}, {"worker", true}, {"room", true}} {
		m := &muted{service: tt.service, lies: tt.lies, until: make(chan struct{})}
		now.Store(m)
		killedUp(s, "all runs", func() bool { return runs(s, "guard") && runs(s, "worker") })
		close(m.until) // it goes on with its lie
		s.Eventually("the worker is ready", func() bool { return strings.Contains(s.Logs("worker"), "READY") })
		if tt.service == "worker" {
			commandsRefuse(s)
		}
		if !tt.lies {
			keptAndCompared(s)
		} else {
			says(s, s.Expect(4, "up"), tt.service+" isn't what was asked of the engine: pids: asked ")
			if c, ok := s.Containers()[tt.service]; ok {
				t.Errorf("the %s is %s", tt.service, c.State)
			}
		}
		s.Expect(0, "down")
	}
}

// What something else than `up` starts was not compared, whatever was before.
func TestStartedByTheEngine(t *testing.T) {
	s := scenario.New(t, "restricted", "a container that the engine starts again is compared by the next up: until then a worker takes no command")
	s.Up()
	readies := strings.Count(s.Logs("guard"), "READY")
	s.Crash("guard")
	s.Eventually("the guard is ready again", func() bool { return strings.Count(s.Logs("guard"), "READY") > readies })
	says(s, s.Expect(0, "ps"), "guard was not compared with what was asked for since its start: `workshop up` does it\n")
	s.Expect(0, "exec", "worker", "--", "true")
	before := s.Containers()["guard"].ID
	keptAndCompared(s)
	if s.Containers()["guard"].ID != before {
		t.Error("the guard was recreated")
	}
	if err := s.Restart("worker"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the worker is ready again", func() bool { return strings.Count(s.Logs("worker"), "READY") > 1 })
	commandsRefuse(s)
	says(s, s.Expect(4, "call", "worker", "shell", "command=id"), "worker: unchanged", "(B41)") // which brings up what isn't
	s.Expect(0, "exec", "worker", "--", "true")
	keptAndCompared(s)
	if scenario.DockerAPI() { // whose containers say themselves what their limits are
		if err := s.Restart("worker"); err != nil {
			t.Fatal(err)
		}
		s.Eventually("the worker is ready again", func() bool { return strings.Count(s.Logs("worker"), "READY") > 2 })
		before := s.Containers()["worker"].ID
		i, err := s.Docker.ContainerInspect(t.Context(), before)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(i.LogPath, 0); err != nil { // as it is when it was rotated
			t.Fatal(err)
		}
		s.Up()
		if s.Containers()["worker"].ID == before {
			t.Error("a worker of which nobody knows what it is was kept")
		}
		s.Expect(0, "exec", "worker", "--", "true")
		return
	}
	readies = strings.Count(s.Logs("guard"), "READY")
	s.Crash("guard")
	s.Eventually("the guard is ready again", func() bool { return strings.Count(s.Logs("guard"), "READY") > readies })
	if err := os.WriteFile(filepath.Join(pidsGroup(s, "guard"), "pids.max"), []byte("max"), 0); err != nil {
		t.Fatal(err)
	}
	says(s, s.Expect(4, "up"), "guard isn't what was asked of the engine: pids: asked 64, found 0 (B5)")
	if c, ok := s.Containers()["guard"]; ok {
		t.Errorf("the guard is %s", c.State)
	}
	s.Up()
}

// pidsGroup is the control group that limits the processes of a service (cgroups(7)).
func pidsGroup(s *scenario.Scenario, service string) string {
	s.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid(service)) + "/cgroup")
	if err != nil {
		s.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		switch f := strings.SplitN(strings.TrimSpace(line), ":", 3); f[1] {
		case "":
			if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
				return filepath.Join("/sys/fs/cgroup", f[2])
			}
		case "pids":
			return filepath.Join("/sys/fs/cgroup/pids", f[2])
		}
	}
	s.Fatalf("no group limits the processes of %s:\n%s", service, text)
	return ""
}
