package docker

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/fileowner"
)

// worker is a container with the properties that a session needs.
type worker struct {
	container engine.Container
	pid       int    // of its main process, in the engine's PID namespace
	user      string // of its processes
	start     string // the name of this start of it
	dialIn    string // its dial-in directory on this machine; "": none
}

// look finds the container of a service, if possible by one call with the name that
// workshop gives it. Its labels must match; otherwise look searches by label.
func (e *Engine) look(ctx context.Context, project, service string) (worker, error) {
	name := project + "-" + service + "-1"
	i, err := answer(ctx, name, func(ctx context.Context) (*inspection, error) { return e.inspectFast(ctx, name) })
	if isSilent(err) {
		return worker{}, err
	}
	if err == nil {
		l := i.Config.Labels
		if l[engine.LabelProject] == project && l[engine.LabelService] == service &&
			engine.OurContainer(l) && !engine.IsHelper(l) && !strings.EqualFold(l[engine.LabelOneOff], "true") {
			return i.worker(project, service), nil
		}
	}
	c, err := e.one(ctx, project, service)
	if err != nil {
		return worker{}, err
	}
	w, err := e.lookAt(ctx, c.ID, project, service)
	w.container = c
	return w, err
}

// lookAt returns the properties of a service's container that the list doesn't have.
func (e *Engine) lookAt(ctx context.Context, id, project, service string) (worker, error) {
	i, err := e.inspect(ctx, id, service)
	if err != nil {
		return worker{}, e.explain(err)
	}
	w := worker{pid: i.State.Pid, user: i.Config.User, start: startOf(i.ID, i.State.FinishedAt)}
	for _, m := range i.Mounts {
		w.mount(project, service, string(m.Type), m.Source, m.Destination, m.RW)
	}
	return w, nil
}

// mount sets the dial-in directory if the mount is one: a read-only bind of the directory
// that `up` made for this worker. Files are made and removed there, so that the engine's
// word isn't enough for another one.
func (w *worker) mount(project, service, kind, source, target string, writable bool) {
	if kind == "bind" && target == compose.DialInDir && !writable && isDoor(source, project, service) {
		w.dialIn = source
	}
}

// isDoor reports whether a path is that of a worker's dial-in directory in a runtime
// directory of the project: one of the caller alone, by its name (package facts). root
// uses those of others.
func isDoor(dir, project, service string) bool {
	runtime := filepath.Dir(dir)
	if !filepath.IsAbs(dir) || dir != compose.DialInPath(compose.Facts{Local: true, RuntimeDir: runtime}, service) || !strings.HasPrefix(filepath.Base(runtime), project+"-") {
		return false
	}
	info, err := os.Lstat(runtime)
	if err != nil || info.Mode() != fs.ModeDir|0o700 {
		return false
	}
	uid, _, known := fileowner.Of(info)
	return !known || uid == os.Getuid() || os.Getuid() == 0
}

// inspection is the needed part of the response to GET /containers/ID/json:
// decoding it takes a fraction of the whole.
type inspection struct {
	ID    string `json:"Id"`
	Name  string
	State struct {
		Status, FinishedAt string
		Pid                int
	}
	Config struct {
		User   string
		Labels map[string]string
	}
	Mounts []struct {
		Type, Source, Destination string
		RW                        bool
	}
}

func (i *inspection) worker(project, service string) worker {
	l := i.Config.Labels
	w := worker{pid: i.State.Pid, user: i.Config.User, start: startOf(i.ID, i.State.FinishedAt), container: engine.Container{
		ID: i.ID, Name: strings.TrimPrefix(i.Name, "/"), Service: l[engine.LabelService], Role: l[compose.LabelRole],
		State: stateOf(i.State.Status), Directory: engine.ProjectDirectory(l),
	}}
	for _, m := range i.Mounts {
		w.mount(project, service, m.Type, m.Source, m.Destination, m.RW)
	}
	return w
}

// maxInspection bounds the engine's response.
const maxInspection = 4 << 20

// inspectFast inspects a container of a local engine by a path without an API
// version, so that the client needn't negotiate one first.
func (e *Engine) inspectFast(ctx context.Context, name string) (*inspection, error) {
	if e.endpoint.socket() == "" {
		return nil, http.ErrNotSupported
	}
	var i inspection
	err := e.request(ctx, http.MethodGet, "/containers/"+url.PathEscape(name)+"/json", func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return http.ErrMissingFile
		}
		return json.NewDecoder(io.LimitReader(resp.Body, maxInspection)).Decode(&i)
	})
	if err != nil {
		return nil, err
	}
	return &i, nil
}
