package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// What the docker command passes on: its own flags, the plugin's name, the rest.
func TestPluginArgs(t *testing.T) {
	for _, tt := range []struct {
		line, rest string
		variables  map[string]string
		err        string
	}{
		{line: "workshop up -f x", rest: "up -f x"},
		{line: "workshop"},
		{line: "--context build -D workshop ps", rest: "ps", variables: map[string]string{"DOCKER_CONTEXT": "build"}},
		{line: "-H unix:///run/x.sock --config=/c --log-level error workshop exec -H", rest: "exec -H", variables: map[string]string{"DOCKER_HOST": "unix:///run/x.sock", "DOCKER_CONFIG": "/c"}},
		{line: "--tlsverify workshop ps", rest: "ps", variables: map[string]string{"DOCKER_TLS_VERIFY": "1"}},
		{line: "--tlscert /x workshop ps", err: "--tlscert is not passed on"},
		{line: "ps", err: "run `docker workshop`"},
		{line: "", err: "run `docker workshop`"},
		{line: "--unknown workshop ps", err: "unknown flag"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			rest, variables, err := pluginArgs(strings.Fields(tt.line))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(rest, strings.Fields(tt.rest)) || !maps.Equal(variables, tt.variables) {
				t.Errorf("got %q, %v, %v; want %q, %v", rest, variables, err, tt.rest, tt.variables)
			}
		})
	}
}

// The docker command takes a plugin whose metadata has these.
func TestPluginMetadata(t *testing.T) {
	var out bytes.Buffer
	if err := writeMetadata(&out, "v1.2.3"); err != nil {
		t.Fatal(err)
	}
	var m struct{ SchemaVersion, Vendor, Version, ShortDescription string }
	if err := json.Unmarshal(out.Bytes(), &m); err != nil || m.SchemaVersion != "0.1.0" || m.Vendor == "" || m.Version != "v1.2.3" || m.ShortDescription == "" {
		t.Errorf("%v: %s", err, out.String())
	}
	for name, is := range map[string]bool{"docker-workshop": true, "/usr/libexec/docker/cli-plugins/docker-workshop": true, "docker-workshop.exe": true, "workshop": false} {
		if isPlugin([]string{name}) != is {
			t.Errorf("%s is a plugin: %v", name, !is)
		}
	}
}

// Help of the plugin says how docker calls it, in its usage as in its examples.
func TestPluginUsage(t *testing.T) {
	for line, want := range map[string]string{
		"--help":    "\n  docker workshop COMMAND [FLAGS]\n",
		"up --help": "\n  docker workshop up [WORKER...] [FLAGS]\n",
	} {
		var out bytes.Buffer
		sys := &command.System{In: strings.NewReader(""), Out: &out, Err: &out, Under: "docker ",
			Env: &app.Env{Lookup: func(string) (string, bool) { return "", false }, Dir: t.TempDir()}}
		if code := Run(t.Context(), NewWorkshop, strings.Fields(line), sys); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit code %d, %q is not in\n%s", line, code, want, out.String())
		}
	}
}
