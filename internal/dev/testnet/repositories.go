package testnet

import (
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
)

// Repositories is git's own server, git http-backend, for the bare repositories below a
// directory, with a journal of the requests that it got.
type Repositories struct {
	Dir     string
	handler http.Handler

	mu      sync.Mutex
	journal []string
}

// NewRepositories returns a server for repositories, "acme/app", which it makes below dir: each
// takes pushes, and advertises what a guard has to take out.
func NewRepositories(dir string, names ...string) (*Repositories, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		bare := filepath.Join(dir, name+".git")
		if err := exec.Command(program, "init", "-q", "--bare", "--initial-branch=main", bare).Run(); err != nil {
			return nil, err
		}
		for _, key := range []string{"http.receivepack", "receive.advertisePushOptions", "uploadpack.allowFilter", "uploadpack.advertiseBundleURIs"} {
			if err := exec.Command(program, "-C", bare, "config", key, "true").Run(); err != nil {
				return nil, err
			}
		}
	}
	env := []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	return &Repositories{Dir: dir, handler: &cgi.Handler{Path: program, Args: []string{"http-backend"}, Dir: dir, Env: env, InheritEnv: []string{"PATH"}, Stderr: os.Stderr}}, nil
}

func (r *Repositories) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.journal = append(r.journal, req.Method+" "+req.URL.RequestURI())
	r.mu.Unlock()
	if len(req.TransferEncoding) > 0 { // CGI has no chunks: http-backend reads to the end
		req.TransferEncoding, req.ContentLength = nil, -1
	}
	r.handler.ServeHTTP(w, req)
}

// Journal returns the requests since the last call.
func (r *Repositories) Journal() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.journal = nil }()
	return slices.Clone(r.journal)
}
