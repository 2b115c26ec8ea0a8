package workshop

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// everyVariable has a variable without a default wherever a variable may be.
const everyVariable = `workshop:
  name: w
  description: "about ${ABOUT}"
  container:
    image: ${IMAGE}
    pull: ${PULL}
    user: "${WORKER_UID}:${WORKER_GID}"
    workdir: ${WORKDIR}
    network:
      mode: restricted
      allow:
        - "${API}"
        - "${DB}:5432"
        - "*.${DOMAIN}"
        - {host: "${INTERNAL}", port: 5432, private: true}
        - {cidr: "${NET}", port: 22}
        - {cidr: "${ADDRESS}/32", port: 22}
        - {cidr: "198.51.${OCTET}.0/24", port: 23}
      deny: ["${DENIED}"]
      dns: ["${RESOLVER}", "${RESOLVER2}:53"]
      proxy: "${PROXY}"
    mounts:
      - ${DATA}:${TARGET}:${MODE}
      - {source: "~/cache/${TOOL}", target: "/cache-${TOOL}", outside_project: true}
      - {source: "./${A}/b", target: "/data/${B}", mode: "${MODE}", name: data}
      - {source: "${OUT}", target: "${OUT_TARGET}", exclude: [.env]}
    scratch: ${SCRATCH}
    tmp: ${TMP_SIZE}M
    shm: ${SHM}
    home: ${HOME_SIZE}
    resources: {memory: "${MEMORY}", cpu: "${CPU}", pids: "${PIDS}", timeout: "${TIMEOUT}m"}
    env: {A: "${ENV_A}", B: "x ${ENV_B} y"}
    secrets: [{name: s, file: "${SECRET_FILE}"}]
    runtime: ${RUNTIME}
  workers:
    - name: a
      tools: [shell]
      description: ${DESCRIPTION}
      instructions: Do ${WHAT}.
      container:
        build: {context: "${CONTEXT}", dockerfile: "${DOCKERFILE}", args: {X: "${X}"}, target: "${STAGE}"}
        secrets: [s]
        ports: ["${HOST_ADDRESS}:${PORT_A}:8080", {published: "${PORT_B}", target: 8081, host: "${HOST_B}"}]
    - name: b
      tools: []
      container: {build: "${CONTEXT_B}", scratch: "${SCRATCH_B}", mounts: ["${DATA}/below:/x", {source: "~/cache/${TOOL}/sub", target: /y, outside_project: true}], network: {allow: ["${DB}:5432"]}}
`

// noMachine fails when anything but the workshop's own file is opened.
type noMachine struct {
	fs.FS
	t *testing.T
}

func (f noMachine) Open(name string) (fs.File, error) {
	if path.Base(name) == ".env" {
		f.t.Errorf("%s is read", name)
	}
	return f.FS.Open(name)
}

// symbolicOptions have an environment that must not be asked.
func symbolicOptions(t *testing.T) Options {
	return Options{Symbols: true, Home: "/home/me", EnvFiles: []string{"more.env"}, Lookup: func(name string) (string, bool) {
		t.Errorf("%s is looked up", name)
		return "", false
	}}
}

// A file with variables wherever they may be loads without any of them, and nothing of
// the machine is read.
func TestSymbols(t *testing.T) {
	fsys := noMachine{project(everyVariable, map[string]string{".env": "API=x\nbroken\x00", "more.env": "="}), t}
	w, list := Load(t.Context(), fsys, "workshop.yaml", symbolicOptions(t))
	if list.HasErrors() || !w.Symbolic {
		t.Fatal(list)
	}
	for _, d := range list {
		if strings.Contains(d.Summary, "symbol") {
			t.Errorf("about a stand-in: %s", d.Summary)
		}
	}
	c := w.Container
	got := map[string]string{
		"image": c.Image.Source.Template, "memory": c.Resources.Memory.Source.Template, "tmp": c.Tmp.Source.Template,
		"user": c.User.Source.Template, "source": c.Mounts[0].Source.Source.Template, "mode": c.Mounts[0].ModeTemplate,
		"~": c.Mounts[1].Source.Source.Template, "host": c.Network.Allow[1].Template, "cidr": c.Network.Allow[4].Template,
		"proxy": c.Network.Proxy.Source.Template, "env": c.Env["B"].Source.Template, "secret": c.Secrets[0].File.Source.Template,
		"port": w.Workers[0].Container.Ports[0].Published.Source.Template,
	}
	want := map[string]string{
		"image": "${IMAGE:?}", "memory": "${MEMORY:?}", "tmp": "${TMP_SIZE:?}M",
		"user": "${WORKER_UID:?}:${WORKER_GID:?}", "source": "${DATA:?}", "mode": "${MODE:?}",
		"~": "${HOME:?}/cache/${TOOL:?}", "host": "${DB:?}", "cidr": "${NET:?}",
		"proxy": "${PROXY:?}", "env": "x ${ENV_B:?} y", "secret": "${SECRET_FILE:?}", "port": "${PORT_A:?}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !c.Mounts[0].ReadWrite || !c.Mounts[2].ReadWrite {
		t.Error("a mode that is not known is taken for the narrower one")
	}
}

// Each key that may have a variable has one in the file of the test.
func TestSymbolsOfEveryKey(t *testing.T) {
	for _, s := range sections {
		for _, f := range formOf(s.form).fields {
			scalar := strings.Contains(f.typ.String(), "Value[") || strings.Contains(f.typ.String(), "Upstream") || strings.Contains(f.typ.String(), "publishedPort")
			if f.literal != "" || !scalar {
				continue
			}
			found := false
			for line := range strings.Lines(everyVariable) {
				_, after, ok := strings.Cut(line, f.keyName+": ")
				found = found || ok && strings.Contains(after, "${")
			}
			if !found && f.keyName != "dns" && f.keyName != "source" {
				t.Errorf("%s.%s: no variable in the file of this test", s.path, f.keyName)
			}
		}
	}
}

func TestSymbolValues(t *testing.T) {
	const text = "workshop:\n  name: w\n  container:\n    image: i:1\n    tmp: 1M\n    mounts: [\"./src:/src\"]\n    network: {mode: restricted, allow: [a.example.org]}\n%s  workers:\n    - name: a\n      tools: []\n      container: %s\n"
	for _, tt := range []struct{ name, base, worker, want string }{
		{"a default", "    env: {A: \"${A:-x}\"}\n", "{}", ""},
		{"an empty default that the key refuses", "    scratch: ${S:-}\n", "{}", ""},
		{"a refused default", "    user: ${U:-0}\n", "{}", ""},
		{"no value would help", "    scratch: ${S}\n    mounts: [\"${A}:/etc\"]\n", "{}", "the key \"mounts\" is given twice"},
		{"a target of ours", "    env: {A: \"${A}\"}\n    caches: [{name: c, target: \"${T}\"}]\n", "{}", "can't be a variable"},
		{"a limit that is a variable", "", "{tmp: \"${TMP_SIZE}\"}", ""},
		{"a literal limit", "", "{tmp: 2M}", "tmp 2M is more than"},
		{"a source that is a variable", "", "{mounts: [\"${SRC}:/src\"]}", ""},
		{"a source below, by a variable", "", "{mounts: [\"./src/${SRC}:/src\"]}", ""},
		{"a source that isn't granted", "", "{mounts: [\"./other:/src\"]}", "the source ./other is not among"},
		{"a host that is a variable", "", "{network: {allow: [\"${HOST_A}\"]}}", "${HOST_A:?} port 80,443 is not covered"},
		{"a broken variable", "", "{workdir: \"${\"}", "no name follows"},
		{"two ports by variables", "", "{ports: [\"${P}:8080\", \"${Q}:8081\", \"${P}:8082\"]}", ""},
		{"two targets by variables", "", "{mounts: [\"./src:${T}\", \"./src:${T}\"]}", ""},
		{"a proxy of the machine, by default", "    env: {A: b}\n", "{ports: [\"${P:-99999}:8080\"]}", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := strings.Replace(strings.Replace(text, "%s", tt.base, 1), "%s", tt.worker, 1)
			_, list := Load(t.Context(), project(file, nil), "workshop.yaml", symbolicOptions(t))
			var errs []string
			for _, d := range list {
				if d.Severity == diag.Error {
					errs = append(errs, d.Summary)
				}
			}
			if got := strings.Join(errs, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Without a variable in it, a file means the same with and without values.
func FuzzSymbols(f *testing.F) {
	f.Add([]byte(everyVariable))
	f.Add([]byte("workshop:\n  name: w\n  container: {image: \"${A}${B}${C}\", mounts: [\"${A}${B}:${C}${D}:${E}\"]}\n  workers: [{name: a, tools: []}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, list := Load(t.Context(), noMachine{singleFile(data), t}, "workshop.yaml", symbolicOptions(t))
		if (w == nil) != list.HasErrors() {
			t.Fatalf("workshop %v with diagnostics %v", w, list)
		}
		checkList(t, list)
		if w == nil {
			return
		}
		checkLoaded(t, w)
		for i := range w.Workers {
			for _, r := range w.Workers[i].Container.Network.Allow {
				if r.Template == "" && r.Host == (firewall.HostPattern{}) && !r.CIDR.IsValid() {
					t.Errorf("a rule about nothing: %+v", r)
				}
			}
		}
	})
}
