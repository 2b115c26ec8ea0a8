//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/visible"
)

// commanding is text that would drive a terminal: a colour, a title, a clearing in one byte
// of C1, an order of letters, a line that goes over another.
const commanding = "x\x1b[31m\x1b]0;t\a\u009b2J\u202e\r"

// commandingEngine answers like an engine on which project p of dir is up; each word that
// it may choose is commanding.
func commandingEngine(t *testing.T, dir string) (socket string) {
	t.Helper()
	const e = commanding
	type object = map[string]any
	labels := func(service, role string) object {
		return object{
			engine.LabelProject: "hostile", engine.LabelService: service, engine.LabelOneOff: "False", engine.LabelWorkingDir: filepath.Join(dir, ".workshop", "hostile"),
			compose.LabelDirectory: dir, compose.LabelRole: role, compose.LabelConfigHash: "h", engine.LabelComposeHash: "h", engine.LabelNotHeld: "B5" + e,
		}
	}
	summary := func(id, service, role, state string) object {
		return object{
			"Id": id, "Names": []string{"/hostile-" + service + "-1" + e}, "Image": e, "ImageID": e, "State": state, "Status": "Exited (3) " + e, "Labels": labels(service, role),
			"HostConfig": object{"NetworkMode": e}, "NetworkSettings": object{"Networks": object{e: object{"NetworkID": e}}},
			"Ports": []object{{"IP": e, "PublicPort": 80, "PrivatePort": 80, "Type": e}},
		}
	}
	answers := object{
		"/_ping": "OK",
		"/info": object{
			"ID": e, "ServerVersion": e, "OSType": "linux", "Architecture": "x86_64" + e, "OperatingSystem": e, "KernelVersion": e, "Name": e, "DockerRootDir": e,
			"Runtimes": object{e: object{}}, "DefaultRuntime": e, "CgroupVersion": e,
		},
		"/version": object{"ApiVersion": "1.47" + e, "Version": e},
		"/containers/json": []object{
			summary("1"+e, "worker", "worker", "running"), summary("2", "x"+e, "worker", e), summary("3", "guard", "guard", "exited"), summary("4", "room-worker", "room"+e, "running"),
		},
		"/containers/1/json": object{
			"Id": "1", "State": object{"Status": e, "Running": true, "StartedAt": "2026-01-01T00:00:00Z"},
			"Config": object{"User": e, "Labels": labels("worker", "worker"), "Env": []string{e}}, "HostConfig": object{"SecurityOpt": []string{e}, "CapAdd": []string{e}},
		},
		"/networks": []any{}, "/volumes": object{}, "/system/df": object{},
	}
	socket = filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if _, rest, ok := strings.Cut(strings.TrimPrefix(path, "/v"), "/"); ok && strings.HasPrefix(path, "/v1.") {
			path = "/" + rest
		}
		if strings.HasPrefix(path, "/containers/") && strings.HasSuffix(path, "/json") && path != "/containers/json" {
			path = "/containers/1/json"
		}
		w.Header().Set("Api-Version", "1.47")
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[path]
		if !ok {
			w.WriteHeader(http.StatusInternalServerError)
			answer = object{"message": "no" + e + "\nsecond " + e}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return socket
}

// B60: nothing that an engine says drives the terminal of a command.
func TestEngineDrivesNoTerminal(t *testing.T) {
	dir := app.RealPath(t.TempDir())
	hostileProject(t, dir)
	project, home := filepath.Join(dir, "project"), filepath.Join(dir, "home")
	vars := map[string]string{
		"DOCKER_HOST": "unix://" + commandingEngine(t, project), "WORKSHOP_ENGINE": "docker", "HOME": home, "XDG_RUNTIME_DIR": filepath.Join(dir, "run"),
	}
	if err := os.Mkdir(vars["XDG_RUNTIME_DIR"], 0o700); err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	said := 0
	for _, args := range []string{
		"ps", "ps -q", "ps --format json", "ls", "ls -q", "ls --format json", "exec worker true", "call worker read_file path=x", "logs", "logs worker", "capabilities",
		"capabilities --format json", "doctor", "doctor -v", "verify", "firewall log", "firewall show", "port worker 80", "wait worker", "restart worker", "cp worker:/x y",
		"up", "up -v", "up --dry-run", "up --dry-run -v", "up --without-limits", "down -v", "down", "down --all", "down --forget", "prune --dry-run", "mcp tools worker", "compile --load",
	} {
		var out bytes.Buffer
		sys := &command.System{
			Env: &app.Env{Dir: project, Home: home, Lookup: lookup, Engine: app.Engines, Version: "test"}, In: strings.NewReader(""), Out: &out, Err: &out,
		}
		Run(t.Context(), NewWorkshop, strings.Fields(args), sys)
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, `\x1b`) || strings.Contains(line, `\u001b`) {
				said++
			}
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r != '\t' && visible.Hidden(r) }) {
				t.Errorf("workshop %s: %q", args, line)
			}
		}
	}
	if said < 20 {
		t.Errorf("only %d lines say what the engine says: this tests nothing", said)
	}
}
