package docker

import (
	"cmp"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/dev/testutil"
	"github.com/llmdo/workshop/internal/engine"
)

var update = flag.Bool("update", false, "rewrite golden files")

// answered is what an engine says of itself. It has no names or paths of the machine where
// it was made.
type answered struct {
	Command, Host, Date string
	Ping                http.Header
	Answers             map[string]json.RawMessage // by path, without the version of the API
}

var apiVersion = regexp.MustCompile(`^/v[0-9.]+`)

// ServeHTTP answers as the engine did, on this machine.
func (a answered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := apiVersion.ReplaceAllString(r.URL.Path, "")
	text, ok := a.Answers[path]
	switch {
	case path == "/_ping":
		for name, value := range a.Ping {
			w.Header()[name] = value
		}
	case ok:
		name, _ := os.Hostname()
		release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
		_, _ = strings.NewReplacer(`"HOST"`, `"`+name+`"`, `"KERNEL"`, `"`+strings.TrimSpace(string(release))+`"`).WriteString(w, string(text))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// sure is what is known of an engine, but for what is of the machine where the test runs.
func sure(t *testing.T, e *Engine) engine.Info {
	t.Helper()
	i, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i.Endpoint, i.Socket, i.IPv6 = "", "", false
	i.Findings = slices.DeleteFunc(i.Findings, func(f engine.Finding) bool { return f.Name == "linger" })
	return i
}

// TestAnswersOfThisEngine: what this engine says of itself is understood the same from a
// recording. With -record it is written to a file.
func TestAnswersOfThisEngine(t *testing.T) {
	e, err := New(t.Context(), Options{Lookup: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out := answered{
		Command: "go test ./internal/engine/docker -run TestAnswersOfThisEngine -record FILE", Date: time.Now().UTC().Format(time.DateOnly),
		Answers: map[string]json.RawMessage{},
	}
	want := sure(t, e)
	out.Host = want.Daemon.OperatingSystem + ", cgroup v" + want.Daemon.CgroupVersion
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	scrub := strings.NewReplacer(`"`+name+`"`, `"HOST"`, `"`+strings.TrimSpace(string(release))+`"`, `"KERNEL"`,
		want.DataRoot, "/data", e.endpoint.socket(), "/run/engine.sock", os.Getenv("HOME")+"/", "/home/",
		cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), "/run/user/1000"), "/run/user/1000", cmp.Or(want.ID, "ID"), "ID")
	get := func(path string, read func(*http.Response) error) {
		t.Helper()
		if err := e.request(t.Context(), http.MethodGet, path, read); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	get("/_ping", func(r *http.Response) error {
		out.Ping = http.Header{}
		for _, name := range []string{"Api-Version", "Libpod-Api-Version", "Ostype", "Builder-Version", "Server"} {
			if v := r.Header.Values(name); v != nil {
				out.Ping[name] = v
			}
		}
		return nil
	})
	paths := map[string]string{"/info": "/v" + MinAPIVersion + "/info", "/version": "/v" + MinAPIVersion + "/version"}
	if want.Flavour == engine.FlavourPodman {
		paths["/libpod/info"] = "/v4.0.0/libpod/info"
	}
	for at, path := range paths {
		get(path, func(r *http.Response) error {
			text, err := io.ReadAll(r.Body)
			out.Answers[at] = json.RawMessage(scrub.Replace(string(text)))
			return err
		})
	}
	want.DataRoot = scrub.Replace(want.DataRoot)
	want.Daemon.NetworkHelper = scrub.Replace(want.Daemon.NetworkHelper)
	got := sure(t, engineOf(t, out))
	for _, i := range []*engine.Info{&want, &got} {
		i.ID, i.Unlimited = "", false
		for n := range i.Findings {
			i.Findings[n].Accepted = false
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("from the recording (-want +got):\n%s", diff)
	}
	if *record == "" {
		return
	}
	text, err := json.MarshalIndent(out, "", " ")
	if err == nil {
		err = os.WriteFile(*record, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// recordedAnswers reads testdata/answers/NAME.json.
func recordedAnswers(t *testing.T, name string) (a answered) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "answers", name+".json"))
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestLoadFails: why the engine can't load an image is its message alone.
func TestLoadFails(t *testing.T) {
	for name, tc := range map[string]struct{ answer, want string }{
		"full":    {`{"errorDetail":{"message":"write /x: no space left on device"},"error":"write /x: no space left on device"}`, "load the workshop-init image: write /x: no space left on device"},
		"says ok": {`{"stream":"Loaded"}`, "load the workshop-init image: the engine doesn't have it afterwards"},
	} {
		t.Run(name, func(t *testing.T) {
			a := recordedAnswers(t, "docker-20.10.24")
			a.Answers["/images/load"] = json.RawMessage(tc.answer)
			e := engineOf(t, a)
			program, err := fakeInit()
			if err != nil {
				t.Fatal(err)
			}
			e.init = testutil.InitSet(program, "amd64", "arm64")
			if _, err := e.loadInit(t.Context()); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// TestInfoOfRecordings: what each recorded engine can enforce, and what is refused there.
func TestInfoOfRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/answers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			a := recordedAnswers(t, strings.TrimSuffix(filepath.Base(file), ".json"))
			if a.Command == "" || a.Host == "" || a.Date == "" {
				t.Errorf("without command, host or date: %+v", a)
			}
			got, err := json.MarshalIndent(sure(t, engineOf(t, a)), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(file, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}
