package docker

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"
)

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestEndpointOrder(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		o    Options
		vars map[string]string
		want string
	}{
		"default":     {want: "unix:///var/run/docker.sock"},
		"environment": {vars: map[string]string{"DOCKER_HOST": "tcp://198.51.100.7:2375"}, want: "tcp://198.51.100.7:2375"},
		"host wins":   {o: Options{Host: "unix:///x.sock"}, vars: map[string]string{"DOCKER_HOST": "tcp://198.51.100.7:2375"}, want: "unix:///x.sock"},
	} {
		if tc.vars == nil {
			tc.vars = map[string]string{}
		}
		tc.vars["DOCKER_CONFIG"] = dir
		tc.o.Lookup = env(tc.vars)
		ep, err := findEndpoint(tc.o)
		if err != nil || ep.host != tc.want {
			t.Errorf("%s: %q, %v; want %q", name, ep.host, err, tc.want)
		}
	}
	if _, err := findEndpoint(Options{Context: "nope", Lookup: env(map[string]string{"DOCKER_CONFIG": dir})}); err == nil || !strings.Contains(err.Error(), "nope") {
		t.Errorf("unknown context: %v", err)
	}
}

// One clear error each for an engine that does not answer.
func TestUnreachable(t *testing.T) {
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead.sock")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	for host, want := range map[string]string{
		"unix://" + filepath.Join(dir, "none.sock"): "the socket does not exist",
		"unix://" + dead:    "systemctl start docker",
		"tcp://127.0.0.1:1": "DOCKER_HOST",
	} {
		e, err := New(t.Context(), Options{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Info(t.Context())
		var u *UnreachableError
		if !asUnreachable(err, &u) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), host) {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestInfoOfThisEngine(t *testing.T) {
	e := realEngine(t)
	i, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i.Kind != "docker" || i.OS != "linux" || i.DataRoot == "" || i.Version == "" || len(i.Runtimes) == 0 {
		t.Errorf("%+v", i)
	}
	raw, err := e.cli.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*system.Info){
		"another host":   func(s *system.Info) { s.Name = "elsewhere" },
		"another kernel": func(s *system.Info) { s.KernelVersion = "1.0" },
		"Docker Desktop": func(s *system.Info) { s.OperatingSystem = "Docker Desktop" },
	} {
		r := raw
		change(&r)
		if e.isLocal(r) {
			t.Errorf("%s counts as local", what)
		}
	}
}
