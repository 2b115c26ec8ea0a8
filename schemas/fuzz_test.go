package schemas_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/schemas"
	"github.com/llmdo/workshop/workshop"
)

// What the loader accepts, the schema accepts: an editor never marks a file
// that works.
func FuzzSchemaAcceptsWhatLoads(f *testing.F) {
	paths, _ := filepath.Glob("../workshop/testdata/valid/*.yaml")
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	s := compile(f, "workshop.schema.json", schemas.Workshop)
	f.Fuzz(func(t *testing.T, data []byte) { loadsSoFits(t, s, data) })
}

// The same with one value in each place where text has a form of its own.
func FuzzSchemaAcceptsValuesThatLoad(f *testing.F) {
	places := []string{
		"mounts: [%s]", "mounts: [{source: %s, target: /m, outside_project: true}]", "mounts: [{source: ./a, target: %s}]", "mounts: [{source: ./a, target: /a, exclude: [%s]}]",
		"network: {mode: restricted, allow: [%s]}", "network: {mode: restricted, allow: [{host: %s}]}", "network: {mode: restricted, allow: [{host: a.example.org, port: %s}]}",
		"network: {mode: restricted, allow: [{cidr: %s}]}", "network: {mode: restricted, deny: [%s]}", "network: {mode: restricted, dns: [%s]}", "network: {mode: restricted, proxy: %s}",
		"network: restricted\n    ports: [%s]", "network: restricted\n    ports: [{target: 8080, host: %s}]", "network: restricted\n    ports: [{target: 8080, published: %s}]",
		"network: {mode: restricted, allow: [{host: a.example.org, upload: %s}]}", "network: {mode: restricted, allow: [{host: a.example.org, ech: %s}]}",
		"user: %s", "workdir: %s", "runtime: %s", "tmp: %s", "resources: {cpu: %s}", "resources: {memory: %s}", "resources: {pids: %s}", "resources: {timeout: %s}",
		"env: {A: %s}", "env: {%s: a}", "secrets: [{name: %s, env: A}]", "secrets: [{name: a, env: %s}]", "secrets: [{name: a, file: %s}]", "pull: %s",
	}
	for i, text := range []string{"./a:/b", "~/x", "/m", "*.pem", "github.com:22", "**.example.org", "8000-8010", "10.0.0.0/8", "a.example.org", "198.51.100.53", "http://p:1", "8080:8080", "::1", "9000", "1:1", "/w", "crun", "1.5g", "1e0", "6M", "64", "1h", "x", "A", "tok", "B", "./ca", "never", "5M/h", "1/m", "allow"} {
		f.Add(uint(i), text, true)
		f.Add(uint(i), text, false)
	}
	s := compile(f, "workshop.schema.json", schemas.Workshop)
	f.Fuzz(func(t *testing.T, place uint, text string, quoted bool) {
		if quoted {
			j, err := json.Marshal(text)
			if err != nil {
				t.Skip()
			}
			text = string(j)
		}
		line := strings.Replace(places[place%uint(len(places))], "%s", text, 1)
		loadsSoFits(t, s, []byte("workshop:\n  name: t\n  container:\n    image: i:1\n    "+line+"\n  workers: [worker]\n"))
	})
}

func loadsSoFits(t *testing.T, s *jsonschema.Schema, data []byte) {
	t.Helper()
	fsys := fstest.MapFS{"workshop.yaml": {Data: data}}
	for _, name := range []string{"worker", "code-reviewer", "security-scanner"} {
		fsys["workers/"+name+".md"] = &fstest.MapFile{Data: []byte("---\nallowed-tools: Read\n---\nx\n")}
	}
	w, _ := workshop.Load(t.Context(), fsys, "workshop.yaml", workshop.Options{Home: "/home/me", Lookup: func(string) (string, bool) { return "set", true }})
	if w == nil {
		return
	}
	var raw any
	if err := yaml.Load(data, &raw); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(raw)
	if err != nil {
		t.Skip() // keys that are not text can't be JSON
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, data)
	}
}
