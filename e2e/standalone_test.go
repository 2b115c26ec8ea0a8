//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
	"github.com/llmdo/workshop/internal/dev/testutil"
)

const (
	standaloneFile = "docker/compose.local-llm.yaml"
	modelServer    = "local-llm"
	modelPort      = "local-llm-port"
	aStandalone    = "Compose files are Docker's"
)

// standaloneModel is the repository's file with an image that has a stub for llama-server.
type standaloneModel struct {
	*scenario.Scenario
	image   string // by digest, in a registry of this machine's loopback
	compose string // the program
	file    string
	env     []string
	probed  map[string]map[string]string // by container and probe
}

func newStandalone(t *testing.T, intent string) *standaloneModel {
	t.Helper()
	s := scenario.At(t, intent, map[string]string{"models/model.gguf": "GGUF\x03\x00\x00\x00"})
	if err := os.Chmod(filepath.Join(s.Dir, "models"), 0o777); err != nil { // what is refused there is the mount's doing
		t.Fatal(err)
	}
	host, push := s.Registry()
	m := &standaloneModel{Scenario: s, file: standaloneFile, probed: map[string]map[string]string{}}
	m.image = host + "/llama.cpp@" + push(host+"/llama.cpp:server", serverImage(t, s))
	m.env = []string{"LOCAL_LLM_IMAGE=" + m.image, "LOCAL_LLM_MODELS=" + filepath.Join(s.Dir, "models")}
	s.Cleanup(func() {
		if m.compose == "" {
			return
		}
		if t.Failed() {
			t.Logf("%s: %s\n%s: %s", modelServer, s.Logs(modelServer), modelPort, s.Logs(modelPort))
		}
		m.run("down", "-v", "-t", "0")
	})
	return m
}

// serverImage has what the file uses of llama.cpp's: llama-server, which is our stub, and
// perl-base. The probe is at the place where scenarios look for it.
func serverImage(t *testing.T, s *scenario.Scenario) []byte {
	t.Helper()
	dir := t.TempDir()
	stub := filepath.Join(dir, "llama-server")
	if err := testutil.LLMStub(stub); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"app/llama-server": stub, compose.InitPath[1:]: s.Init(), "usr/bin/perl": "/usr/bin/perl"}
	out, err := exec.Command("/usr/bin/perl", "-e", `print join "\n", grep { m{/perl-base$} } @INC`).Output()
	base := strings.TrimSpace(string(out))
	testutil.Require(t, err == nil && base != "", "/usr/bin/perl with Debian's perl-base")
	err = filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[path[1:]] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	libs, err := exec.Command("ldd", "/usr/bin/perl").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(libs), -1) {
		files[lib[1:]] = lib
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	dirs := map[string]bool{".": true}
	var mkdir func(string)
	mkdir = func(dir string) {
		if !dirs[dir] {
			mkdir(filepath.Dir(dir))
			dirs[dir] = true
			_ = w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755})
		}
	}
	for _, name := range []string{"tmp", "models", "run/local-llm"} {
		mkdir(name)
	}
	for name, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		mkdir(filepath.Dir(name))
		_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))})
		_, _ = w.Write(content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// composeV2 is the program that scripts/compose-v2 builds.
func composeV2(t *testing.T) string {
	t.Helper()
	path := filepath.Join(scenario.TheLab(t).Bin, "docker-compose-v2")
	_, err := os.Stat(path)
	testutil.Require(t, err == nil, "Compose v2: scripts/compose-v2 builds it")
	return path
}

// run runs Compose from the repository's root, as docs/local-models.md does.
func (m *standaloneModel) run(args ...string) (string, error) {
	cmd := exec.Command(m.compose, append([]string{"-p", m.Project, "-f", m.file}, args...)...)
	cmd.Dir, cmd.Env = m.Root, append(os.Environ(), m.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *standaloneModel) up(services ...string) {
	m.Helper()
	if out, err := m.run(append([]string{"up", "-d", "-t", "0"}, services...)...); err != nil {
		m.Fatalf("up -d: %v\n%s", err, out)
	}
}

// ask is a request to the published port. Status 0: nobody answers.
func (m *standaloneModel) ask(method, path string, head ...string) (status int, body string, answered http.Header) {
	r, err := http.NewRequest(method, "http://127.0.0.1:8080"+path, nil)
	if err != nil {
		m.Fatal(err)
	}
	if method == http.MethodPost {
		r.Body = io.NopCloser(strings.NewReader(`{"stream":true,"messages":[{"content":"two words"}]}`))
	}
	for _, h := range head {
		switch name, value, ok := strings.Cut(h, ": "); {
		case name == "Host":
			r.Host = value
		case ok:
			r.Header.Set(name, value)
		}
	}
	a, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		m.Error(err)
	}
	return a.StatusCode, string(b), a.Header
}

func (m *standaloneModel) answers() bool {
	status, _, _ := m.ask("GET", "/v1/health")
	return status == 200
}

// hostile is what the server says when it tries something (internal/dev/llmstub).
func (m *standaloneModel) hostile(verb, of string) string {
	_, body, _ := m.ask("POST", "/test/"+verb+"?of="+of)
	var said struct{ Result string }
	_ = json.Unmarshal([]byte(body), &said)
	return said.Result
}

// inspected is what the engine says of a container.
type inspected struct {
	Config struct {
		Image       string
		Healthcheck *struct{ Test []string }
	}
	State      struct{ Health *struct{ Status string } }
	HostConfig struct {
		RestartPolicy struct{ Name string }
		DNS           []string `json:"Dns"`
		PortBindings  map[string][]struct{ HostIP, HostPort string }
	}
	NetworkSettings struct {
		Ports    map[string][]struct{ HostIP, HostPort string }
		Networks map[string]struct{ IPAddress string }
	}
}

func (m *standaloneModel) inspect(service string) inspected {
	m.Helper()
	out, err := exec.Command("docker", "inspect", m.Inspect(service).ID).Output()
	var list []inspected
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil || len(list) != 1 {
		m.Fatalf("docker inspect: %v", err)
	}
	return list[0]
}

// TestStandaloneModel is what the file is for: `up -d`, and there is one port of the
// loopback, behind which a model answers.
func TestStandaloneModel(t *testing.T) {
	scenario.OnlyDocker(t, aStandalone)
	v1, err := exec.LookPath("docker-compose")
	testutil.Require(t, err == nil, "docker-compose 1.29 (Debian package docker-compose)")
	m := newStandalone(t, "up -d of "+standaloneFile+" is one hardened port, and nothing else")
	defer func() { m.TB = t }()
	for name, program := range map[string]string{"docker-compose 1.29": v1, "Compose v2": composeV2(t)} {
		t.Run(name, func(t *testing.T) {
			m.TB, m.compose = t, program
			before := listeners(t)
			m.up()
			m.Eventually("the model answers", m.answers)
			opened := slices.DeleteFunc(listeners(t), func(l string) bool { return slices.Contains(before, l) })
			if want := []string{"127.0.0.1:8080"}; !slices.Equal(opened, want) {
				t.Errorf("this machine listens on %v, want %v", opened, want)
			}
			if _, body, _ := m.ask("POST", "/v1/chat/completions"); !strings.Contains(body, `" words"`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
				t.Errorf("a streamed answer: %s", body)
			}
			for what, problem := range m.checkAll() {
				t.Errorf("%s: %s", what, problem)
			}
			m.attack()
			m.Crash(modelServer)
			m.Eventually("the model answers again", m.answers)
			for _, service := range []string{modelServer, modelPort} {
				m.Eventually(service+" is healthy", func() bool { return m.inspect(service).State.Health.Status == "healthy" })
			}
			if program != v1 {
				m.checklist() // as the page has it
			}
			m.Stop(modelServer)
			if status, _, _ := m.ask("GET", "/health"); status != 503 {
				t.Errorf("without the server: %d, want 503", status)
			}
			if problem := m.check("health", modelPort); problem == "" {
				t.Error("without the server its port is healthy")
			}
			if out, err := m.run("down", "-v", "-t", "1"); err != nil {
				t.Errorf("down: %v\n%s", err, out)
			}
			if left := m.Leftovers(); len(left) > 0 {
				t.Errorf("down left %v", left)
			}
			m.key()
		})
	}
}

// checklist runs the commands of the page's table, and compares what they print with what it
// says.
func (m *standaloneModel) checklist() {
	m.Helper()
	page, err := os.ReadFile("../docs/local-models.md")
	if err != nil {
		m.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "### Checklist\n")
	_, script, _ := strings.Cut(list, "```sh\n")
	script, list, _ = strings.Cut(script, "```\n")
	list, _, _ = strings.Cut(list, "###")
	script = strings.ReplaceAll(script, "docker compose ", m.compose+" -p "+m.Project+" ")
	rows := regexp.MustCompile("(?m)^\\|.*\\| `(.+)` \\| `(.+)` \\|$").FindAllStringSubmatch(list, -1)
	if got := strings.Count(list, "\n|"); got != len(rows)+2 || got < 20 {
		m.Errorf("the checklist has %d lines, of which %d are rows with a command", got, len(rows))
	}
	bash := func(script string) (string, error) {
		cmd := exec.Command("bash", "-e", "-c", script)
		cmd.Dir, cmd.Env = m.Root, append(os.Environ(), m.env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	names, err := bash(script + "\ndeclare -p server port")
	if err != nil {
		m.Fatalf("%v\n%s", err, names)
	}
	for _, row := range rows {
		out, err := bash(names + row[1])
		want := strings.ReplaceAll(regexp.QuoteMeta(row[2]), "…", ".*")
		if got := strings.Join(strings.Fields(out), " "); err != nil || !regexp.MustCompile("^"+want+"$").MatchString(got) {
			m.Errorf("%s\n\tprints %s (%v), the page says %s", row[1], got, err, row[2])
		}
	}
}

// attack: what a server does that was taken over by a model's file or a request.
func (m *standaloneModel) attack() {
	m.Helper()
	if got := m.Control("connect 198.51.100.66:9000")[0].Seen; got != "open" {
		m.Errorf("control: an ordinary container connects: %s", got)
	}
	m.Internet.Reset()
	for _, try := range [][3]string{
		{"connect", testnet.Evil + ":9000", "network is unreachable"},
		{"connect", "10.239.208.1:22", "network is unreachable"}, // this machine
		{"send", testnet.Evil + ":5000", "network is unreachable"},
		{"listen", ":80", "permission denied"},
		{"write", "/app/x", "read-only"},
		{"write", "/models/x", "read-only"},
		{"write", "/dev/shm/x", "no such file"},
		{"setuid", "", "not permitted"},
	} {
		if got := m.hostile(try[0], try[1]); !strings.Contains(got, try[2]) {
			m.Errorf("%s %s: %q, want %s", try[0], try[1], got, try[2])
		}
	}
	silent(m.Scenario, testnet.Evil)
}

// key: without one any key serves, with one nothing but what llama-server itself leaves open.
func (m *standaloneModel) key() {
	m.Helper()
	text, err := os.ReadFile(filepath.Join(m.Root, standaloneFile))
	if err != nil {
		m.Fatal(err)
	}
	m.Write("docker/compose.yaml", string(text))
	m.Write("docker/.env", "LOCAL_LLM_KEY=of-this-test\n") // beside the file: both read it there alone
	defer func(file string) { m.file = file }(m.file)
	m.file = filepath.Join(m.Dir, "docker/compose.yaml")
	m.up()
	m.Eventually("the model answers", m.answers)
	for key, want := range map[string]int{"": 401, "Authorization: Bearer x": 401, "Authorization: Bearer of-this-test": 200} {
		if status, _, _ := m.ask("POST", "/v1/chat/completions", key); status != want {
			m.Errorf("%q: %d, want %d", key, status, want)
		}
	}
	if out, err := m.run("down", "-v", "-t", "0"); err != nil {
		m.Errorf("down: %v\n%s", err, out)
	}
}

// listeners are the addresses of this machine's network that take TCP connections.
func listeners(t *testing.T) (all []string) {
	t.Helper()
	for _, file := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != "0A" {
				continue
			}
			var ip, port uint32
			if _, err := fmt.Sscanf(f[1], "%8X:%4X", &ip, &port); err != nil || file == "tcp6" {
				all = append(all, f[1])
				continue
			}
			all = append(all, fmt.Sprintf("%d.%d.%d.%d:%d", byte(ip), byte(ip>>8), byte(ip>>16), byte(ip>>24), port))
		}
	}
	return all
}
