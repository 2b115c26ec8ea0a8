//go:build linux

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/docker/docker/api/types/image"

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
	ctx := context.Background()
	if _, err := s.Docker.ImageInspect(ctx, ref); err == nil {
		return
	}
	program, err := os.ReadFile(filepath.Join(s.Bin, "workshop-init-linux-"+runtime.GOARCH))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, d := range []string{"bin/", "etc/", "tmp/", "workspace/"} {
		_ = w.WriteHeader(&tar.Header{Name: d, Typeflag: tar.TypeDir, Mode: 0o755})
	}
	_ = w.WriteHeader(&tar.Header{Name: "bin/tool", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))})
	_, _ = w.Write(program)
	_ = w.Close()
	r, err := s.Docker.ImageImport(ctx, image.ImportSource{Source: &b, SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r)
	r.Close()
	t.Cleanup(func() { _, _ = s.Docker.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
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
	importImage(t, s, "workshop-e2e-bare:1")
	s.Up()
	s.Sees("worker", "status Name 1 -> workshop-init", "list /bin -> tool", "exec /bin/sh -> ENOENT", "exec /bin/tool probe help -> exit 0", "env HOME -> /home/worker", "env USER -> worker",
		"lookup workshop -> 127.0.0.1*")
}
