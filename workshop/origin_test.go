package workshop

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// envProject is a project with a `.env` and one variable of the workers' that
// is made of value.
func envProject(dotenv, value string) fs.FS {
	return fstest.MapFS{
		"workshop.yaml":     {Data: []byte("workshop:\n  name: test\n  container:\n    image: i:1\n    env: {A: \"" + value + "\"}\n  workers: [worker]\n")},
		"workers/worker.md": {Data: []byte("---\nallowed-tools: Read\n---\nx\n")},
		".env":              {Data: []byte(dotenv)},
		"mine.env":          {Data: []byte("MINE=${SET}\n")},
		"mixed.env":         {Data: []byte("MINE=${FROM_DOTENV}\nOTHER=plain\n")},
	}
}

// B45: the repository's `.env` reads no environment, in none of the forms that
// its language has; --env-file does.
func TestTheProjectsEnvFileReadsNoEnvironment(t *testing.T) {
	for _, tt := range []struct {
		name, dotenv, value, want, at string
	}{
		{"a value", "X=plain\n", "${X:-dev}", "plain", ""},
		{"its own value", "B=plain\nX=${B}-$B\n", "${X:-dev}", "plain-plain", ""},
		{"a default for itself", "X=${X:-latest}\n", "${X:-dev}", "latest", ""},
		{"quoted literally", "X='${SET}'\n", "${X:-dev}", "${SET}", ""},
		{"unused", "Y=${SET}\n", "${X:-dev}", "dev", ""},
		{"the environment, as workshop.yaml shows", "SET=other\n", "${SET}", "set", ""},
		{"a bare name", "X\nSET\n", "${X:-dev}", "dev", ""},
		{"braces", "X=${SET}\n", "${X:-dev}", "", ".env:1:3"},
		{"no braces", "# a comment\nX=a-$SET\n", "${X:-dev}", "", ".env:2:5"},
		{"double quotes", "X=\"a ${SET}\"\n", "${X:-dev}", "", ".env:1:6"},
		{"exported", "export X=${SET}\n", "${X:-dev}", "", ".env:1:10"},
		{"with a default", "X=${SET:-none}\n", "${X:-dev}", "", ".env:1:3"},
		{"by way of another", "B=${SET}\nX=$B\n", "${X:-dev}", "", ".env:1:3"},
		{"as YAML writes it", "X: ${SET}\n", "${X:-dev}", "", ".env:1:4"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := envProject(tt.dotenv, tt.value)
			w, l := Load(t.Context(), fsys, "workshop.yaml", testOptions())
			if tt.at == "" {
				if w == nil || w.Container.Env["A"].V != tt.want {
					t.Fatalf("got %v %v, want %q", w, l, tt.want)
				}
				return
			}
			if w != nil || len(l) != 1 || l[0].Code != codeEnvAsks || l[0].Range.String() != tt.at {
				t.Fatalf("got %v, want %s at %s", l, codeEnvAsks, tt.at)
			}
			if got := text(t, fsys, l); strings.Contains(got, "X=") {
				t.Errorf("the file is quoted:\n%s", got)
			}
		})
	}
	o := testOptions()
	o.EnvFiles = []string{"mine.env"}
	if w, l := Load(t.Context(), envProject("", "${MINE}"), "workshop.yaml", o); w == nil || w.Container.Env["A"].V != "set" {
		t.Errorf("--env-file: %v", l)
	}
}

// Whose word a variable is: the user's by the environment and --env-file, the
// repository's by `.env`, and by what --env-file takes from that.
func TestOriginOfVariables(t *testing.T) {
	for _, tt := range []struct {
		name, variable, envFile string
		want                    Origin
	}{
		{"environment", "SET", "", OfUser},
		{".env", "FROM_DOTENV", "", OfFile},
		{"--env-file", "MINE", "mine.env", OfUser},
		{"--env-file that takes from .env", "MINE", "mixed.env", OfFile},
		{"next to it", "OTHER", "mixed.env", OfFile},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := testOptions()
			if tt.envFile != "" {
				o.EnvFiles = []string{tt.envFile}
			}
			p := &problems{}
			got, ok := environment(envProject("FROM_DOTENV=x\n", "a"), ".", o, p).lookup(tt.variable)
			if !ok || got.origin != tt.want || p.errors > 0 {
				t.Errorf("got %v %v, want origin %v; %v", got, ok, tt.want, p.list)
			}
		})
	}
}
