package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/secretsource"
)

// TestPlacesOfCredentials: nothing that a credential is made of, or by, is where a repository
// or a worker chooses what it is (B33, B43).
func TestPlacesOfCredentials(t *testing.T) {
	project, seen, mine := t.TempDir(), t.TempDir(), t.TempDir()
	for _, dir := range []string{project, seen, mine} {
		if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(seen, "x"), filepath.Join(mine, "link")); err != nil {
		t.Fatal(err)
	}
	ready := &Project{ProjectRef: ProjectRef{Dir: project}, Compiled: &compose.Compiled{Facts: &compose.Facts{Sources: map[string]compose.SourceFacts{"./src": {Real: RealPath(seen)}}}}}
	env := &Env{Home: mine, Lookup: func(string) (string, bool) { return "", false }}
	for _, tt := range []struct {
		name string
		of   func(file string) credential.Credential
		said string
	}{
		{"value", func(f string) credential.Credential {
			return credential.Credential{Source: secretsource.Source{File: f}}
		}, "the value of"},
		{"ca", func(f string) credential.Credential { return credential.Credential{Authorities: f} }, "the `ca` of"},
		{"known_hosts", func(f string) credential.Credential { return credential.Credential{KnownHosts: f} }, "the `known_hosts` of"},
		{"program", func(f string) credential.Credential {
			return credential.Credential{Source: secretsource.Source{Command: []string{f, "a"}}}
		}, "the command of"},
		{"script", func(f string) credential.Credential {
			return credential.Credential{Source: secretsource.Source{Command: []string{"/bin/sh", f}}}
		}, "the command of"},
		{"option", func(f string) credential.Credential {
			return credential.Credential{Source: secretsource.Source{Command: []string{"/usr/bin/x", "--config=" + f}}}
		}, "the command of"},
		{"words of a script", func(f string) credential.Credential {
			return credential.Credential{Source: secretsource.Source{Command: []string{"/bin/sh", "-c", "exec <'" + f + "';cat"}}}
		}, "the command of"},
	} {
		for _, file := range []string{filepath.Join(project, "x"), filepath.Join(seen, "x"), filepath.Join(mine, "link")} {
			c := tt.of(file)
			c.Name = "a"
			if err := own(env, ready, []credential.Credential{c}, nil); err == nil || CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), tt.said+" the credential a") {
				t.Errorf("%s, %s: %v", tt.name, file, err)
			}
		}
		if err := own(env, ready, []credential.Credential{tt.of(filepath.Join(mine, "x"))}, nil); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	// In a project that is the home directory, what is the user's own is there, too.
	homes := facts.Homes(os.Getuid(), env.Lookup)
	if len(homes) == 0 {
		return
	}
	project = RealPath(homes[0])
	ready.Dir = project
	for _, tt := range []struct {
		c  credential.Credential
		ok bool
	}{
		{credential.Credential{KnownHosts: filepath.Join(project, "x")}, true},
		{credential.Credential{Source: secretsource.Source{Command: []string{filepath.Join(project, "x")}}}, false},
		{credential.Credential{KnownHosts: filepath.Join(seen, "x")}, false},
	} {
		if err := own(env, ready, []credential.Credential{tt.c}, nil); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.c, err)
		}
	}
}
