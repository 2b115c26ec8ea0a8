package app

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
)

// testEnv is an environment whose events are written as plain text.
func testEnv(env *Env, said io.Writer) *Env {
	env.Events = func(e Event) { _, _ = io.WriteString(said, e.Plain()) }
	return env
}

// Continuous integration is known by what its systems set.
func TestInCI(t *testing.T) {
	for value, want := range map[string]bool{
		"CI=true": true, "CI=1": true, "CI=yes": true, "CI=false": false, "CI=": false, "GITHUB_ACTIONS=true": true,
		"TF_BUILD=True": true, "GITLAB_CI=no": false, "JENKINS_URL=http://ci.example.org": true, "HOME=true": false,
	} {
		name, v, _ := strings.Cut(value, "=")
		s := &Env{Lookup: func(x string) (string, bool) {
			if x != name {
				return "", false
			}
			return v, true
		}}
		if got := s.inCI(); (got == name) != want {
			t.Errorf("%s: %q", value, got)
		}
	}
}

func TestRelativeHome(t *testing.T) {
	for home, want := range map[string]string{"/home/u": "/home/u", ".": "", "here": "", "": ""} {
		if got := HomeDir(func(name string) (string, bool) { return home, name == "HOME" }); got != want {
			t.Errorf("HOME=%s: %q", home, got)
		}
	}
}

// What a client must pass on so that its server finds what this shell finds.
func TestPlaces(t *testing.T) {
	vars := map[string]string{
		"DOCKER_HOST": "unix:///x.sock", "DOCKER_CONTEXT": "", "XDG_CONFIG_HOME": "/home/me/.config/", "XDG_STATE_HOME": "/s",
		"XDG_RUNTIME_DIR": fmt.Sprintf("/run/user/%d", os.Getuid()), "OTHER": "x",
	}
	env := &Env{Home: "/home/me", Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	if got, want := env.Places(), map[string]string{"DOCKER_HOST": "unix:///x.sock", "XDG_STATE_HOME": "/s"}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
