package namespace

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
	"github.com/llmdo/workshop/workshop"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenEnv is the environment in which golden workshops are loaded, as in
// package compose.
var goldenEnv = map[string]string{
	"HOME": "/home/user", "DATA_DIR": "./data", "MEMORY": "512M", "TOKEN_URL": "https://token.example.org/$path",
	"EGRESS_PROXY": "http://proxy.example.org:3128", "API_HOST": "api.example.org", "BUILD_REF": "v1.2", "UID": "1000", "PIDS": "99",
	"RESOLVER": "198.51.100.53", "PORT": "8082",
}

// projects are the workshops of package compose's tests and the examples.
func projects(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"../../../compose/testdata/*/workshop.yaml", "../../../examples/*/workshop.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, f := range files {
			if dir := filepath.Dir(f); filepath.Base(dir) != "kernel" { // which no worker here has
				out = append(out, dir)
			}
		}
	}
	return out
}

// compiled is a workshop on a machine where it can run.
func compiled(t testing.TB, dir string, also ...func(*compose.Facts)) *compose.Compiled {
	t.Helper()
	w, list := workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{
		Home:   "/home/user",
		Lookup: func(name string) (string, bool) { v, ok := goldenEnv[name]; return v, ok },
	})
	if list.HasErrors() {
		t.Fatal(list)
	}
	c, err := compose.Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	f := compose.Facts{
		ProjectDir: "/work/project", Arch: "amd64", IPv6: true, Local: true, UID: 1000, GID: 1000, UserReason: "the caller",
		RuntimeDir: "/run/user/1000/workshop/x", InitImage: "sha256:1111", InitVolume: "workshop-init-2222",
		HostPaths: []string{"/bin", "/etc/ssl/certs", "/usr"}, Sources: map[string]compose.SourceFacts{},
		SecretFiles: map[string]string{}, Protected: map[string][]compose.Protected{}, Ports: map[compose.PortKey]uint16{},
	}
	for _, k := range c.AutoPorts() {
		f.Ports[k] = 26000
	}
	for i := range w.Workers {
		k := &w.Workers[i].Container
		for _, m := range k.Mounts {
			real := m.Source.V
			if !path.IsAbs(real) {
				real = path.Join(f.ProjectDir, real)
			}
			f.Sources[m.Source.V] = compose.SourceFacts{Exists: true, Dir: true, Real: real, UID: 1000, GID: 1000, Mode: 0o777}
			if m.ReadWrite {
				f.Protected[m.Source.V] = []compose.Protected{{Path: ".git", Kind: compose.GitDir}, {Path: ".git/hooks", Kind: compose.GitHooks}}
			}
		}
		for _, s := range k.Secrets {
			f.SecretFiles[s.Name] = f.RuntimeDir + "/secret-" + s.Name
		}
	}
	for _, change := range also {
		change(&f)
	}
	c, list = compose.WithFacts(c, f)
	if list.HasErrors() {
		t.Fatal(list)
	}
	return c
}

// sample is the machine of the goldens.
func sample(rootless bool) machine {
	m := machine{
		volumes: "/home/user/.local/state/workshop/namespace/p/volumes", tools: "/home/user/.cache/workshop/init/2222",
		resolv: "/home/user/.local/state/workshop/namespace/p/resolv", filter: []byte("the filter"),
		image: func(ref string) (workerImage, error) {
			return workerImage{
				id: "sha256:of " + ref, dir: "/home/user/.cache/workshop/images/" + path.Base(ref),
				env: []string{"PATH=/opt/tool/bin:/usr/bin", "LANG=de_DE.UTF-8", "VERSION=1"}, user: "root", workingDir: "/srv", volumes: []string{"/data", "/tmp"},
			}, nil
		},
		disk: func(ref string) (string, error) {
			return "/home/user/.cache/workshop/images/" + path.Base(ref) + ".erofs", nil
		},
		guestInit: "/home/user/.cache/workshop/init/2222-guest/workshop-init",
		real:      func(p string) (string, error) { return strings.Replace(p, "/bin", "/usr/bin", 1), nil },
	}
	if rootless {
		m.rootless, m.uid, m.gid, m.firstPort, m.files = true, 1000, 1000, 1024, 1<<20
	}
	return m
}

// Every project of the compile's tests is said completely: a change of what a
// container is shows here.
func TestTranslateGolden(t *testing.T) {
	for _, dir := range projects(t) {
		for suffix, rootless := range map[string]bool{"": false, "-rootless": true} {
			name := filepath.Base(dir) + suffix
			t.Run(name, func(t *testing.T) {
				d := engine.Desired{Compiled: compiled(t, dir)}
				var b bytes.Buffer
				e := json.NewEncoder(&b)
				e.SetIndent("", " ")
				e.SetEscapeHTML(false)
				for _, service := range sortedKeys(d.Compiled.Project.Services) {
					before := engine.ConfigHash(d, service)
					s, err := translate(d, service, sample(rootless))
					if engine.ConfigHash(d, service) != before {
						t.Errorf("%s: the project was changed", service)
					}
					if err != nil {
						b.WriteString(err.Error() + "\n")
						continue
					}
					check(t, s, rootless)
					maps.DeleteFunc(s.Labels, func(key, _ string) bool { return strings.HasSuffix(key, "hash") })
					if err := e.Encode(s); err != nil {
						t.Fatal(err)
					}
				}
				if strings.Contains(dir, "examples") && !slices.Contains([]string{"code-review", "full", "hello"}, filepath.Base(dir)) {
					return
				}
				golden := filepath.Join("testdata", name+".txt")
				if *update {
					if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), b.String()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// check looks for what holds for every container.
func check(t *testing.T, s *spec.Container, rootless bool) {
	t.Helper()
	worker := s.Role == spec.Worker
	for what, ok := range map[string]bool{
		"B1: capabilities": len(s.Capabilities) == 0 || s.Role == spec.Room && slices.Equal(s.Capabilities, []string{"CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"}),
		"B2: seccomp":      len(s.Seccomp) > 0,
		"B4: user":         s.Role == spec.Room && !rootless || s.Process.UID != 0,
		"rootless: user":   !rootless || s.Process.UID == 1000 && s.Process.GID == 1000,
		"B5: limits":       s.Limits.Memory > 0 && s.Limits.CPUs > 0 && s.Limits.PIDs > 0 && !s.Limits.Unlimited,
		"B6: network":      (s.Network.Mode == spec.NetHost) == (s.Role == spec.Guard),
		"B10: ports":       len(s.Ports) == 0 || s.Role == spec.Guard,
		"B12: program":     strings.HasSuffix(s.Process.Args[0], "/workshop-init"),
		"sysctls":          len(s.Sysctls) == 0 || s.Network.Mode == spec.NetRoom || s.Network.Mode == spec.NetNone,
	} {
		if !ok {
			t.Errorf("%s: %s: %+v", s.Service, what, s)
		}
	}
	for i, m := range s.Mounts {
		if m.Type == spec.Bind && (!path.IsAbs(m.Source) || m.Recursive && (!m.ReadOnly || s.Root.Dir != "")) || m.Type == spec.Tmpfs && m.Size <= 0 {
			t.Errorf("%s: %+v", s.Service, m)
		}
		if worker && (strings.HasSuffix(m.Source, "_sockets") || strings.HasSuffix(m.Source, "_policy")) {
			t.Errorf("%s is given %s", s.Service, m.Source)
		}
		for _, later := range s.Mounts[i+1:] {
			if later.Target == m.Target || strings.HasPrefix(m.Target, later.Target+"/") {
				t.Errorf("%s: %s comes after %s, which lies in it", s.Service, later.Target, m.Target)
			}
		}
	}
}
