package initbuild

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// usualGo is where Go's own instructions put it; it is often not on PATH.
var usualGo = "/usr/local/go/bin/go" // another in a test

// passed are variables of the caller that say how the network and the user's
// directories are reached.
var passed = []string{
	"PATH", "HOME", "USER", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NETRC",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SystemRoot", "USERPROFILE", "LocalAppData", "AppData", // Windows
}

// settings are those of the Go toolchain that say where modules come from, which are
// checked against a database, and where they are kept; none says what is built.
var settings = []string{
	"GOPROXY", "GONOPROXY", "GOPRIVATE", "GOSUMDB", "GONOSUMDB", "GOINSECURE", "GOAUTH", "GOVCS", "GOMODCACHE", "GOCACHE", "GOPATH",
}

// toolchain runs the Go command.
type toolchain struct {
	path  string
	clean string   // an empty directory
	env   []string // complete
}

// errNoGo says what to install.
var errNoGo = errors.New("this program was installed by the Go toolchain, which is not there (`go` on PATH) to build workshop-init: install Go from https://go.dev/dl, or workshop from a package")

// findGo finds the toolchain, of that version or later. clean is an empty directory.
func findGo(ctx context.Context, lookup func(string) (string, bool), clean, want string) (*toolchain, error) {
	path, err := exec.LookPath("go") // never one of the working directory
	if err != nil || !filepath.IsAbs(path) {
		if _, err := os.Stat(usualGo); err != nil {
			return nil, errNoGo
		}
		path = usualGo
	}
	base := []string{"GOTOOLCHAIN=local", "GOWORK=off", "GO111MODULE=on"}
	for _, name := range passed {
		if v, ok := lookup(name); ok {
			base = append(base, name+"="+v)
		}
	}
	t := &toolchain{path: path, clean: clean, env: slices.Clone(base)}
	for _, name := range append([]string{"GOENV"}, settings...) {
		if v, ok := lookup(name); ok {
			t.env = append(t.env, name+"="+v)
		}
	}
	// The user's settings of `go env -w` are asked for by name: it may have others.
	out, err := t.run(ctx, clean, append([]string{"env", "-json", "GOVERSION"}, settings...)...)
	if err != nil {
		return nil, err
	}
	have := map[string]string{}
	if err := json.Unmarshal(out, &have); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	t.env = append(base, "GOENV=off", "GOFLAGS=", "CGO_ENABLED=0")
	for _, name := range settings {
		if have[name] != "" {
			t.env = append(t.env, name+"="+have[name])
		}
	}
	// An older one fetches the one that built this program, as it did then.
	if version.IsValid(want) && version.Compare(have["GOVERSION"], want) < 0 {
		t.env = append(t.env, "GOTOOLCHAIN="+want)
	}
	return t, nil
}

// run runs the Go command in a directory, and returns its standard output.
func (t *toolchain) run(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, args...)
	var out, said bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(slices.Clone(t.env), "PWD="+dir), &out, &said
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		text := strings.TrimSpace(said.String())
		if text == "" {
			text = strings.TrimSpace(out.String())
		}
		lines := strings.Split(text, "\n")
		return nil, fmt.Errorf("go %s: %w: %s", args[0], err, clip.Text(strings.Join(lines[max(0, len(lines)-5):], "; "), 1000))
	}
	return out.Bytes(), nil
}
