//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
)

// smallest is the smallest form of the spec, as it stands there.
const smallest = `workshop:
  name: code-review-workshop
  container:
    image: llm-do-worker:latest
    network: restricted
    mounts:
      - ./src:/workspace/src:ro
      - ./output:/workspace/output:rw
    resources:
      memory: 2G
      cpu: 1
  workers:
    - code-reviewer
    - security-scanner
`

// importImage makes an image of one static program and no shell, unless one of
// that name is there already.
func importImage(t *testing.T, s *scenario.Scenario, ref string) {
	t.Helper()
	if s.HasImage(ref) {
		return
	}
	program, err := os.ReadFile(filepath.Join(s.Bin, "workshop-init-linux-"+runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	s.ImportImage(ref, layer("bin/tool", 0o755, program))
}

// layer is a tar archive of some directories and one program of root's.
func layer(name string, mode int64, program []byte) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, d := range []string{"bin/", "etc/", "tmp/", "workspace/"} {
		_ = w.WriteHeader(&tar.Header{Name: d, Typeflag: tar.TypeDir, Mode: 0o755})
	}
	_ = w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(program))})
	_, _ = w.Write(program)
	_ = w.Close()
	return b.Bytes()
}

func TestSmallestForm(t *testing.T) {
	s := scenario.At(t, "the spec's smallest form validates, compiles and comes up as it stands", map[string]string{
		"workshop.yaml":               smallest,
		"workers/code-reviewer.md":    "---\nname: code-reviewer\ndescription: Reviews code for quality\nallowed-tools: Read, Grep\ndelegates-to: [security-scanner]\n---\nYou are a code reviewer.\n",
		"workers/security-scanner.md": "---\nname: security-scanner\ndescription: Looks for secrets\nallowed-tools: Read\n---\nYou look for secrets.\n",
		"src/main.go":                 "package main\n",
	})
	importImage(t, s, "llm-do-worker:latest")
	s.Expect(0, "validate")
	s.Expect(0, "compile")
	s.Up()
	for _, w := range []string{"code-reviewer", "security-scanner"} {
		s.Sees(w, "read /workspace/src/main.go -> ok", "write /workspace/src/x -> EROFS", `write /workspace/output/`+w+` text=done -> ok`,
			"interfaces -> lo", "connect 198.51.100.66:9000 -> ECONNREFUSED", "lookup allowed.example.org -> NXDOMAIN")
		if s.Read("output/"+w) != "done" {
			t.Errorf("%s wrote nothing", w)
		}
	}
	s.Expect(0, "down")
}

// TestB12_NoShellNeeded: the image is one static program.
func TestB12_NoShellNeeded(t *testing.T) {
	s := scenario.At(t, "an image without a shell, without passwd and without our programs is enough", map[string]string{
		"workshop.yaml":     "workshop:\n  name: bare\n  container:\n    image: workshop-e2e-bare:1\n    pull: never\n    network: {mode: restricted, allow: []}\n  workers: [worker]\n",
		"workers/worker.md": "---\nname: worker\ndescription: Has nothing.\nallowed-tools: []\n---\nNothing.\n",
	})
	if !scenario.DockerAPI() { // into whose store it comes by a registry alone
		s.Write("workshop.yaml", strings.Replace(s.Read("workshop.yaml"), "pull: never", "pull: missing", 1))
	}
	importImage(t, s, "workshop-e2e-bare:1")
	s.Up()
	s.Sees("worker", "status Name 1 -> workshop-init", "list /bin -> tool", "exec /bin/sh -> ENOENT", "exec /bin/tool probe help -> exit 0", "env HOME -> /home/worker", "env USER -> worker",
		"lookup workshop -> 127.0.0.1*")
}
