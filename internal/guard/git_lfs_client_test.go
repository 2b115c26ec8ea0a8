package guard

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

// lfsHost keeps objects of LFS at its own address, as Gitea does.
type lfsHost struct {
	mu      sync.Mutex
	objects map[string]string
}

func (h *lfsHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	before, id, _ := strings.Cut(r.URL.Path, "/info/lfs/objects/")
	object, has := h.objects[id]
	switch {
	case id == "batch":
		var asked struct {
			Operation string
			Objects   []map[string]any
		}
		if err := json.Unmarshal(body, &asked); err != nil {
			w.WriteHeader(422)
			return
		}
		for _, o := range asked.Objects {
			href := map[string]any{"href": "https://allowed.example.org" + before + "/info/lfs/objects/" + o["oid"].(string)}
			o["actions"] = map[string]any{asked.Operation: href}
		}
		w.Header().Set("Content-Type", lfsType)
		_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": asked.Objects})
	case r.Method == http.MethodPut:
		h.objects[id] = string(body)
	case r.Method == http.MethodGet && has:
		_, _ = io.WriteString(w, object)
	default:
		http.NotFound(w, r)
	}
}

// TestB34_GitLFSClient: real git-lfs sends and reads objects through the endpoint that git is led
// to, without a setting of its own.
func TestB34_GitLFSClient(t *testing.T) {
	_, err := exec.LookPath("git-lfs")
	testutil.Require(t, err == nil, "needs git-lfs")
	w := newGitWorld(t, "push acme/app: agent/*", "read acme/lib")
	lfs := &lfsHost{objects: map[string]string{}}
	w.in.Site("allowed.example.org", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/info/lfs/") {
			lfs.ServeHTTP(rw, r)
			return
		}
		w.host.ServeHTTP(rw, r)
	}))
	w.git(0, "lfs", "install", "--skip-repo")
	w.git(0, "clone", "-q", "https://allowed.example.org/acme/app")
	app := filepath.Join(w.work, "app")
	w.git(0, "-C", app, "lfs", "install", "--local")
	w.git(0, "-C", app, "lfs", "track", "*.bin")
	if err := os.WriteFile(filepath.Join(app, "a.bin"), []byte("large\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w.git(0, "-C", app, "add", "-A")
	w.git(0, "-C", app, "commit", "-qm", "x")
	said := w.git(0, "-C", app, "push", "origin", "HEAD:agent/x")
	if len(lfs.objects) != 1 {
		t.Fatalf("objects: %v\n%s", lfs.objects, said)
	}
	w.git(0, "clone", "-q", "--branch", "agent/x", "https://allowed.example.org/acme/app.git", "again")
	if b, err := os.ReadFile(filepath.Join(w.work, "again", "a.bin")); err != nil || string(b) != "large\n" {
		t.Errorf("%q %v", b, err)
	}
	if out := w.git(2, "-C", app, "lfs", "push", "--all", "https://allowed.example.org/acme/lib"); !strings.Contains(out, "objects of LFS are not sent to acme/lib") {
		t.Error(out)
	}
}
