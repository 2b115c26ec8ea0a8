package testutil

import (
	"encoding/pem"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Git runs git in a directory and returns what it prints.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// ServeGit serves the repositories below a directory by HTTPS on the loopback, and returns
// the address of the directory. Git of this process trusts the server: HOME is a new
// directory whose .gitconfig says so.
func ServeGit(t *testing.T, dir string) (address string) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	s := httptest.NewTLSServer(&cgi.Handler{Path: program, Args: []string{"http-backend"}, Dir: dir, Env: []string{
		"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + home,
	}, InheritEnv: []string{"PATH"}, Stderr: os.Stderr})
	t.Cleanup(s.Close)
	ca := filepath.Join(home, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	Git(t, dir, "config", "--global", "http.sslCAInfo", ca)
	Git(t, dir, "config", "--global", "safe.directory", "*")
	return s.URL
}
