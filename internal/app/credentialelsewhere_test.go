package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/broker"
	"github.com/llmdo/workshop/internal/credential"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/guard/lease"
	"github.com/llmdo/workshop/internal/secretsource"
	"github.com/llmdo/workshop/workshop"
)

// TestCredentialsElsewhere: what decides about credentials is nothing that comes with the project
// or that a worker may change, wherever the environment names it (B33).
func TestCredentialsElsewhere(t *testing.T) {
	home, dir, mounted := RealPath(t.TempDir()), RealPath(t.TempDir()), RealPath(t.TempDir())
	in, out := filepath.Join(dir, "x"), filepath.Join(home, "x")
	var mount workshop.Mount
	mount.Source.V = "./mounted"
	lines := []broker.Line{{Line: lease.Line{Room: "room", At: "api", Credential: "api", Host: "api.example.org", Port: 443}}}
	for _, c := range []struct {
		name     string
		vars     map[string]string
		of       credential.Credential
		writable bool
		settings string
		want     string // empty: it is taken
	}{
		{name: "the usual places", of: credential.Credential{Source: secretsource.Source{File: out}, Authorities: out}},
		{name: "the usual file, moved", vars: map[string]string{"XDG_CONFIG_HOME": dir}, want: "the file of credentials"},
		{name: "what was agreed to", vars: map[string]string{"XDG_STATE_HOME": filepath.Join(dir, "state")}, want: "what you agree to"},
		{name: "a file by name", settings: in, want: "the file of credentials"},
		{name: "the machine's authorities", vars: map[string]string{"SSL_CERT_FILE": in}, want: "the certificates of SSL_CERT_FILE"},
		{name: "the machine's, relative", vars: map[string]string{"SSL_CERT_FILE": "x"}, want: "the certificates of SSL_CERT_FILE"},
		{name: "the machine's, a directory", vars: map[string]string{"SSL_CERT_DIR": home + string(filepath.ListSeparator) + dir}, want: "the certificates of SSL_CERT_DIR"},
		{name: "the machine's, with others of the user's", vars: map[string]string{"SSL_CERT_FILE": in}, of: credential.Credential{Authorities: out}},
		{name: "the machine's, which a worker reads", vars: map[string]string{"SSL_CERT_FILE": filepath.Join(mounted, "ca.pem")}},
		{name: "the machine's, which a worker writes", vars: map[string]string{"SSL_CERT_FILE": filepath.Join(mounted, "ca.pem")}, writable: true, want: "the certificates of SSL_CERT_FILE"},
		{name: "a value that a worker reads", of: credential.Credential{Source: secretsource.Source{File: filepath.Join(mounted, "x")}}, want: "the value of the credential api"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mount
			m.ReadWrite = c.writable
			w := &workshop.Workshop{Workers: []workshop.Worker{{Name: "one", Container: workshop.Container{Mounts: []workshop.Mount{m}}}}}
			ready := &Project{ProjectRef: ProjectRef{Dir: dir}, Source: &Source{Workshop: w},
				Compiled: &compose.Compiled{Facts: &compose.Facts{Sources: map[string]compose.SourceFacts{"./mounted": {Real: mounted}}}}}
			env := &Env{Home: home, Dir: dir, Lookup: func(name string) (string, bool) { v, ok := c.vars[name]; return v, ok }}
			env.Settings.Credentials = c.settings
			c.of.Name = "api"
			err := own(env, ready, []credential.Credential{c.of}, lines)
			if (err == nil) != (c.want == "") || err != nil && (CodeOf(err) != CodeRefused || !strings.Contains(err.Error(), c.want+", is in the project")) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestIsHome: HOME, which a project may set, doesn't make the project the home directory.
func TestIsHome(t *testing.T) {
	dir := RealPath(t.TempDir())
	env := &Env{Home: dir, Lookup: func(string) (string, bool) { return "", false }}
	homes := facts.Homes(os.Getuid(), env.Lookup)
	if len(homes) == 0 {
		t.Skip("this machine doesn't know its users")
	}
	if env.isHome(dir) || !env.isHome(RealPath(homes[0])) || !env.isHome(filepath.Dir(RealPath(homes[0]))) {
		t.Errorf("%s is a home directory, or %s isn't", dir, homes[0])
	}
}
