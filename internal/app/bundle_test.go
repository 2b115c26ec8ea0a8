package app

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/promise"
)

// planted are secrets and names by where they are. None of them may be in a bundle (B11).
var planted = map[string]string{
	"environment":        "env-plant-8f3a91",
	"environment, short": "pw9!x7",
	"dotenv":             "dotenv-plant-77aa",
	"dotenv, quoted":     "quoted plant 5511",
	"dotenv, unused":     "unused-plant-0f0f",
	"env file":           "envfile-plant-1234",
	"settings":           "settings-plant-abcd",
	"literal":            "literal-plant-9999",
	"worker's literal":   "worker-plant-4242",
	"build arg":          "buildarg-plant-31",
	"approval rule":      "rule-plant-600d",
	"proxy user":         "proxy-user-plant",
	"proxy password":     "proxy-p%40ss-plant",
	"proxy, decoded":     "proxy-p@ss-plant",
	"file's proxy":       "file-proxy-plant",
	"query":              "query-plant-0101",
	"token":              "ghp_0123456789abcdefghijABCDEFGHIJ012345",
	"host":               "db.secret-corp.example",
	"proxy host":         "proxy.secret-corp.example",
	"file's proxy host":  "egress.secret-corp.example",
	"registry":           "registry.secret-corp.example",
	"user":               "plantuser",
	"log":                "log-line-env-plant-8f3a91",
	"instructions":       "instr-plant-2727",
	"limit of a tool":    "limit-plant-5150",
}

// bundleEnv is a workshop with everything planted.
func bundleEnv(t *testing.T) *Env {
	t.Helper()
	home := filepath.Join(t.TempDir(), planted["user"])
	dir := filepath.Join(home, "project")
	environ := map[string]string{
		"HOME": home, "USER": planted["user"], "DEPLOY_KEY": planted["environment"], "PIN": planted["environment, short"],
		"HTTPS_PROXY":  "http://" + planted["proxy user"] + ":" + planted["proxy password"] + "@" + planted["proxy host"] + ":1/?k=" + planted["query"],
		"EGRESS_PROXY": "http://u:" + planted["file's proxy"] + "@" + planted["file's proxy host"] + ":3128",
		"PATH":         "/usr/bin:/bin",
	}
	write := func(name, text string) {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("project/workshop.yaml", `workshop:
  name: planted
  description: with `+planted["token"]+`
  container:
    image: `+planted["registry"]+`/team/image:1
    env: {KEY: `+planted["literal"]+`, FROM: "${DOTENV}", KEY2: "${DEPLOY_KEY}", KEY3: "${QUOTED}", KEY4: "${ENVFILE}"}
    network:
      mode: restricted
      allow: [`+planted["host"]+`, "*.`+planted["host"]+`", {host: `+planted["host"]+`, port: 5432, private: true}]
      proxy: ${EGRESS_PROXY}
  workers:
    - {name: w, container: {env: {OWN: `+planted["worker's literal"]+`}}}
    - {name: b, container: {build: {context: ., args: {A: `+planted["build arg"]+`}}}}
    - {name: i, description: d, tools: [read_file, "Bash(get `+planted["limit of a tool"]+`)"], instructions: "Log in as `+planted["instructions"]+`"}
  approvals:
    rules: [{tool: shell, match: "curl `+planted["approval rule"]+`", approval: auto}]
`)
	for _, w := range []string{"w", "b"} {
		write("project/workers/"+w+".md", "---\nname: "+w+"\ndescription: d\ntools: [shell]\n---\nWork.\n")
	}
	write("project/Dockerfile", "FROM scratch\n")
	write("project/.env", "DOTENV="+planted["dotenv"]+"\nQUOTED=\""+planted["dotenv, quoted"]+"\"\nUNUSED="+planted["dotenv, unused"]+"\n")
	write("more.env", "ENVFILE="+planted["env file"]+"\n")
	write(".config/workshop/config.yaml", "approvals_command: ask --key "+planted["settings"]+"\n")
	write(".local/state/workshop/namespace/planted/supervisor.log", "it said "+planted["log"]+" at https://x:y@"+planted["host"]+"/?q="+planted["query"]+" with "+planted["token"]+"\n"+
		strings.Join([]string{planted["environment, short"], planted["proxy user"], planted["proxy, decoded"], planted["dotenv, unused"], planted["settings"], planted["env file"], planted["literal"]}, " and ")+"\n")
	write(".local/state/workshop/namespace/planted/state.json", "{}")
	env := &Env{
		Lookup: func(name string) (string, bool) { v, ok := environ[name]; return v, ok },
		Environ: func() (out []string) {
			for _, k := range slices.Sorted(maps.Keys(environ)) {
				out = append(out, k+"="+environ[k])
			}
			return out
		},
		Dir: dir, Home: home, Engine: Engines, Version: "test", ResolvConf: os.DevNull,
	}
	env.Settings.EnvFiles, env.Settings.Engine = []string{filepath.Join(home, "more.env")}, promise.Namespace
	return env
}

// Nothing that is secret gets into a bundle, in clear or by name, wherever it was (B11).
func TestBundleIsRedacted(t *testing.T) {
	env := bundleEnv(t)
	r := env.Doctor(t.Context(), Fail(CodeUsage, "settings: %s is wrong", planted["settings"]))
	b, err := env.Bundle(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	if err := b.Write(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	files := untar(t, path)
	for _, want := range []string{"README.txt", "doctor.json", "machine.txt", "config.json", "supervisor.log"} {
		if files[want] == "" {
			t.Errorf("there is no %s: %v", want, slices.Sorted(maps.Keys(files)))
		}
	}
	for name, text := range files {
		for where, secret := range planted {
			if strings.Contains(strings.ToLower(text), strings.ToLower(secret)) {
				t.Errorf("%s has the secret of %s:\n%s", name, where, text)
			}
		}
		if strings.Contains(text, env.Home) {
			t.Errorf("%s has the home directory", name)
		}
	}
	// What a report is about is still there.
	config := files["config.json"]
	for _, want := range []string{`"memory"`, `"restricted"`, `"KEY": "[secret]"`, "host-", "5432", `"tool": "shell"`} {
		if !strings.Contains(config, want) {
			t.Errorf("config.json has no %s:\n%s", want, config)
		}
	}
	for _, name := range []string{"doctor.json", "config.json"} {
		if !json.Valid([]byte(files[name])) {
			t.Errorf("%s is not valid JSON:\n%s", name, files[name])
		}
	}
	if err := b.Write(path); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("it was overwritten: %v", err)
	}
	link := filepath.Join(t.TempDir(), "link.tar.gz")
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(link); err == nil {
		t.Error("it was written through a link")
	}
	zipped := filepath.Join(t.TempDir(), "b.ZIP")
	if err := b.Write(zipped); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(zipped)
	if err != nil || len(z.File) != len(files) {
		t.Errorf("got %v, %v", z, err)
	}
	z.Close()
}

// A file that can't be loaded, or none, leaves the rest.
func TestBundleOfABrokenWorkshop(t *testing.T) {
	env := bundleEnv(t)
	file := filepath.Join(env.Dir, "workshop.yaml")
	if err := os.WriteFile(file, []byte("workshop:\n  name: planted\n  password: {a: "+planted["literal"]+", b: c}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := func() map[string]string {
		b, err := env.Bundle(t.Context(), DoctorReport{})
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range b.Files {
			files[f.Name] = string(f.Data)
			if strings.Contains(string(f.Data), planted["literal"]) {
				t.Errorf("%s has the secret:\n%s", f.Name, f.Data)
			}
		}
		return files
	}
	if got := bundle()["config.json"]; !strings.Contains(got, "3:3: error [") {
		t.Errorf("got %q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := bundle(); got["machine.txt"] == "" || got["config.json"] != "" {
		t.Errorf("got %v", slices.Sorted(maps.Keys(got)))
	}
}

// A log that is longer than what is kept begins with a whole line: the rest of a value
// that was cut isn't known as one (B11).
func TestBundleOfALongLog(t *testing.T) {
	env := bundleEnv(t)
	file := filepath.Join(env.Home, ".local/state/workshop/namespace/planted/supervisor.log")
	value := planted["environment"]
	for cut := 1; cut < len(value); cut += 3 {
		end := "\nit ended\n"
		text := "said " + value + strings.Repeat("x", maxBundleFile-len(value)+cut-len(end)) + end
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := env.Bundle(t.Context(), DoctorReport{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range b.Files {
			if f.Name == "supervisor.log" && string(f.Data) != "it ended\n" {
				t.Errorf("cut at %d: the log begins with %.30q", cut, f.Data)
			}
		}
	}
}

// A repository's file that has the beginning of a value reveals no rest of it (B11).
func TestBundleOfPlantedBeginnings(t *testing.T) {
	env := bundleEnv(t)
	rest := "T0/B0/rest-plant-3131"
	environ := env.Environ()
	env.Environ = func() []string { return append(environ, "HOOK=https://hooks.example/services/"+rest) }
	for name, text := range map[string]string{
		"project/workshop.yaml":                                  "workshop:\n  name: planted\n  description: hooks.example/services/T0\n",
		".local/state/workshop/namespace/planted/supervisor.log": "it said https://hooks.example/services/" + rest + "\n",
	} {
		if err := os.WriteFile(filepath.Join(env.Home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := env.Bundle(t.Context(), DoctorReport{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range b.Files {
		if strings.Contains(string(f.Data), "rest-plant") {
			t.Errorf("%s has the secret:\n%s", f.Name, f.Data)
		}
	}
}

// A repository's .env with values of everything hangs nothing, and one that is too large
// leaves nothing unredacted (B11, B60).
func TestBundleOfManyValues(t *testing.T) {
	env := bundleEnv(t)
	var text strings.Builder
	for n, says := range map[int]string{10_000: "values of variables to take out", 300_000: "the values of a file can't be taken out"} {
		text.Reset()
		for i := range n {
			fmt.Fprintf(&text, "V%d=%d\n", i, 100_000+i)
		}
		if err := os.WriteFile(filepath.Join(env.Dir, ".env"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := env.Bundle(t.Context(), DoctorReport{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%d: got %v, want %s", n, err, says)
		}
	}
}

func untar(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(h.Name, bundleDir)] = string(data)
	}
}

// What a promise depends on is an error, what isn't needed is fine.
func TestCapabilityFinding(t *testing.T) {
	for _, tt := range []struct {
		kind string
		c    Capability
		want doctor.Finding
	}{
		{promise.Namespace, Capability{Name: "cpu", Promise: "B5", Held: true, Meaning: "limited"}, doctor.Finding{Group: doctor.Cgroups, Name: "cpu", Level: doctor.OK, Text: "limited"}},
		{promise.Namespace, Capability{Name: "cpu", Promise: "B5", Meaning: "no controller", Do: "do this: `x`. Or that"}, doctor.Finding{Group: doctor.Cgroups, Name: "cpu", Level: doctor.Error, Text: "cpu: no controller (B5)", Do: "do this: `x`"}},
		{promise.Docker, Capability{Name: "cpu", Promise: "B5", Meaning: "limited"}, doctor.Finding{Group: doctor.Cgroups, Name: "cpu", Level: doctor.Error, Text: "cpu: Docker can't limit cpu time here (B5)", Do: "see what Docker lacks: `docker info`"}},
		{promise.Namespace, Capability{Name: "nf_tables", Meaning: "AnyIP", Do: "`modprobe`"}, doctor.Finding{Group: doctor.Network, Name: "nf_tables", Level: doctor.Warning, Text: "AnyIP", Do: "`modprobe`"}},
		{promise.Namespace, Capability{Name: "ipv6", Meaning: "IPv6"}, doctor.Finding{Group: doctor.Network, Name: "ipv6", Level: doctor.OK, Text: "no IPv6"}},
		{promise.Docker, Capability{Name: "live-files", Meaning: "sees"}, doctor.Finding{Group: doctor.Engine, Name: "live-files", Level: doctor.Warning, Text: lacking["live-files"]}},
	} {
		if got := capabilityFinding(tt.kind, tt.c); got != tt.want {
			t.Errorf("got %+v, want %+v", got, tt.want)
		}
	}
}
