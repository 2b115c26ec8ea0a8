package compose

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/workshop"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenEnv is the environment in which golden workshops are loaded.
var goldenEnv = types.Mapping{
	"HOME": "/home/user", "DATA_DIR": "./data", "MEMORY": "512M", "TOKEN_URL": "https://token.example.org/$path",
	"EGRESS_PROXY": "http://proxy.example.org:3128", "API_HOST": "api.example.org", "BUILD_REF": "v1.2", "UID": "1234", "PIDS": "99",
	"RESOLVER": "198.51.100.53", "PORT": "8082",
}

// loadWorkshop loads a workshop.yaml as the program does.
func loadWorkshop(t testing.TB, dir string) *workshop.Workshop {
	t.Helper()
	w, list := workshop.Load(t.Context(), os.DirFS(dir), "workshop.yaml", workshop.Options{
		Home:   "/home/user",
		Lookup: func(name string) (string, bool) { v, ok := goldenEnv[name]; return v, ok },
	})
	if list.HasErrors() {
		t.Fatal(list)
	}
	return w
}

// goldens lists the workshops whose output is kept: those of testdata and
// every example, which keeps its output in testdata too.
func goldens(t testing.TB) map[string]string {
	t.Helper()
	dirs := map[string]string{} // directory of the workshop → of its golden files
	for _, pattern := range []string{"testdata/*/workshop.yaml", "../examples/*/workshop.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			dir := filepath.Dir(f)
			if strings.HasPrefix(pattern, "..") {
				dirs[dir] = filepath.Join("testdata", "example-"+filepath.Base(dir))
			} else {
				dirs[dir] = filepath.Join(dir, "golden")
			}
		}
	}
	return dirs
}

// Every golden: the files are as they were, the same again, keep B1 to B12,
// and Compose v2 reads from them the project that was compiled.
func TestGolden(t *testing.T) {
	for dir, golden := range goldens(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			w := loadWorkshop(t, dir)
			c := compiled(t, w)
			for _, v := range Check(c) {
				t.Error(v)
			}
			files, err := Render(c)
			if err != nil {
				t.Fatal(err)
			}
			again, _ := Render(compiled(t, loadWorkshop(t, dir)))
			if diff := cmp.Diff(files, again); diff != "" {
				t.Errorf("another run gives other bytes:\n%s", diff)
			}
			compareGolden(t, golden, files)
			env := maps.Clone(goldenEnv)
			if data, err := os.ReadFile(filepath.Join(dir, ".env")); err == nil {
				more, err := dotenv.UnmarshalWithLookup(string(data), nil)
				if err != nil {
					t.Fatal(err)
				}
				maps.Copy(env, more)
			}
			sameProject(t, c.Project, load(t, composeYAML(t, c), env))
			for _, f := range files {
				if f.Path != seccompFile && strings.Contains(string(f.Data), "token.example.org") {
					t.Errorf("B45: %s has the value of a variable", f.Path)
				}
			}

			full := withFacts(t, c, factsFor(w))
			for _, v := range Check(full) {
				t.Error("with facts: ", v)
			}
			facts, err := RenderFacts(full)
			if why := NoPlainCompose(full); why != "" {
				if err == nil || err.Error() != "render facts: "+why {
					t.Errorf("render facts: %v, want %s", err, why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, golden+"-facts", facts)
		})
	}
}

// factsFor is a machine on which a workshop can run.
func factsFor(w *workshop.Workshop) Facts {
	f := sampleFacts()
	f.Sources, f.SecretFiles, f.Protected = map[string]SourceFacts{}, map[string]string{}, map[string][]Protected{}
	f.HostPaths = []string{"/etc/ssl/certs", "/usr"}
	for i := range w.Workers {
		for _, m := range w.Workers[i].Container.Mounts {
			real := f.absolute(m.Source.V)
			f.Sources[m.Source.V] = SourceFacts{Exists: true, Dir: true, Real: real, UID: 1000, GID: 1000, Mode: 0o777}
			if m.ReadWrite {
				f.Protected[m.Source.V] = []Protected{{".git", GitDir}, {".git/hooks", GitHooks}}
			}
		}
		for _, s := range w.Workers[i].Container.Secrets {
			f.SecretFiles[s.Name] = path.Join(f.RuntimeDir, "secret-"+s.Name)
		}
	}
	return f
}

func compareGolden(t *testing.T, dir string, files []File) {
	t.Helper()
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]bool{}
	for _, f := range files {
		if f.Path == seccompFile || f.Path == ".gitignore" {
			continue // the same everywhere, tested by itself
		}
		p := filepath.Join(dir, filepath.FromSlash(f.Path))
		want[p] = true
		if *update {
			writeFiles(t, dir, []File{{Path: f.Path, Data: f.Data, Mode: 0o644}})
		}
		data, err := os.ReadFile(p)
		if err != nil {
			t.Errorf("%v (-update writes it)", err)
			continue
		}
		if diff := cmp.Diff(string(data), string(f.Data)); diff != "" {
			t.Errorf("%s is not as it was (-golden +now; -update rewrites it):\n%s", p, diff)
		}
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !want[p] {
			t.Errorf("%s is not made any more", p)
		}
		return nil
	})
}

// The engine's own seccomp profile is one golden for all.
func TestSeccompProfileGolden(t *testing.T) {
	p := filepath.Join("testdata", "seccomp.json")
	if *update {
		writeFiles(t, "testdata", []File{{Path: "seccomp.json", Data: SeccompProfile(), Mode: 0o644}})
	}
	data, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != string(SeccompProfile()) {
		t.Errorf("%s is not as it was; -update rewrites it", p)
	}
}

// What a variable is set to changes the project and no rendered file (B45).
func TestRenderedFilesKeepVariables(t *testing.T) {
	dir := filepath.Join("testdata", "variables")
	before, err := Render(compiled(t, loadWorkshop(t, dir)))
	if err != nil {
		t.Fatal(err)
	}
	old := maps.Clone(goldenEnv)
	defer func() { goldenEnv = old }()
	goldenEnv = types.Mapping{
		"DATA_DIR": "./elsewhere", "MEMORY": "1G", "TOKEN_URL": "x", "EGRESS_PROXY": "http://other.example.org:1", "API_HOST": "other.example.org",
		"BUILD_REF": "v2", "UID": "1235", "PIDS": "70", "RESOLVER": "198.51.100.54", "PORT": "9000", "HOME": "/home/user",
	}
	after, err := Render(compiled(t, loadWorkshop(t, dir)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("a value reached a file:\n%s", diff)
	}
}
