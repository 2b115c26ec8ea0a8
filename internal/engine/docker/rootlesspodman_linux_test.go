package docker

import (
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/internal/made"
)

// TestAddLimits: limits are those of the process that reported.
func TestAddLimits(t *testing.T) {
	is := &made.Report{Kernel: made.ReadKernel()}
	if err := addLimits(is, os.Getpid()); err != nil || is.Limits == nil {
		t.Errorf("of this process: %v, %v", is.Limits, err)
	}
	is = &made.Report{Kernel: made.Kernel{Namespaces: map[string]string{"pid": "pid:[1]"}}}
	if err := addLimits(is, os.Getpid()); err == nil || is.Limits != nil || !strings.HasSuffix(err.Error(), `, want "pid:[1]"`) {
		t.Errorf("of a process of another namespace: %v, %v", is.Limits, err)
	}
	if err := addLimits(is, 0); err == nil || is.Limits != nil {
		t.Errorf("of no process: %v, %v", is.Limits, err)
	}
}

// TestCreateWhileOthers: a creation that podman fails for another one at the same time is
// tried again, others aren't.
func TestCreateWhileOthers(t *testing.T) {
	const mappings = "container create: keep-id requires additional UIDs or GIDs defined in /etc/subuid and /etc/subgid to function correctly: %!w(<nil>)"
	for _, tt := range []struct {
		name   string
		fails  []string // messages of the first answers
		asked  int
		failed string
	}{
		{"created", nil, 1, ""},
		{"no ids twice", []string{mappings, mappings}, 3, ""},
		{"never any ids", []string{mappings, mappings, mappings, mappings, mappings}, 5, mappings},
		{"another failure", []string{"no such image"}, 1, "no such image"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, asked := failsFirst(t, "/containers/create", tt.fails)
			made, err := e.createContainer(t.Context(), &creation{config: &container.Config{}, host: &container.HostConfig{}, name: "worker"})
			if *asked != tt.asked || (err == nil) != (made.ID == "made") || (err == nil) != (tt.failed == "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
				t.Errorf("asked %d times, made %q, %v", *asked, made.ID, err)
			}
		})
	}
}

// TestRemoveWhileItEnds: podman fails to remove a container that ends at the same time.
func TestRemoveWhileItEnds(t *testing.T) {
	const ended = "cannot remove container as it could not be stopped: sending SIGKILL to container: container state improper: stopped"
	for _, tt := range []struct {
		name  string
		fails []string
		asked int
		ok    bool
	}{
		{"removed", nil, 1, true},
		{"it ended", []string{ended}, 2, true},
		{"twice", []string{ended, ended}, 2, false},
		{"mounted", []string{"removing container root filesystem: 1 error occurred: unlinkat /c/userdata/shm: device or resource busy"}, 2, true},
		{"another failure", []string{"no space"}, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, asked := failsFirst(t, "/containers/it", tt.fails)
			if err := e.forceRemove(t.Context(), "it"); (err == nil) != tt.ok || *asked != tt.asked {
				t.Errorf("asked %d times, %v", *asked, err)
			}
		})
	}
}

// failsFirst is an engine whose first answers to requests of a path are these messages.
func failsFirst(t *testing.T, path string, messages []string) (e *Engine, asked *int) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	asked = new(int)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if !strings.HasSuffix(r.URL.Path, path) {
			return
		}
		if *asked++; *asked <= len(messages) {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"message":"`+messages[*asked-1]+`"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"Id":"made"}`)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	if e, err = New(t.Context(), Options{Host: "unix://" + socket}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, asked
}
