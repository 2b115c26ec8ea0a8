package compose

import (
	"fmt"
	"testing"
	"time"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/hostpath"
	"github.com/llmdo/workshop/workshop"
)

func at(line int) diag.Source {
	return diag.Source{Range: diag.Range{Filename: "workshop.yaml", Start: diag.Pos{Line: line, Column: 5}}}
}

func val[T any](v T) workshop.Value[T] { return workshop.Value[T]{V: v, Source: at(7)} }

// sampleContainer is what a loader gives for a small file.
func sampleContainer(t testing.TB) workshop.Container {
	t.Helper()
	host, err := firewall.ParseHostPattern("api.example.org")
	if err != nil {
		t.Fatal(err)
	}
	return workshop.Container{
		Image:   val("llm-do-worker:latest"),
		Pull:    val(workshop.PullMissing),
		Workdir: val("/workspace"),
		Network: workshop.Network{
			Mode:   val(firewall.Restricted),
			Allow:  []firewall.Rule{{Host: host, Ports: firewall.DefaultAllowPorts(), Line: "workshop.yaml:9"}},
			Source: at(6),
		},
		Mounts: []workshop.Mount{
			{Source: val("./src"), Target: val("/workspace/src"), At: at(10)},
			{Source: val("./output"), Target: val("/workspace/output"), ReadWrite: true, At: at(11)},
		},
		Tmp: val(workshop.Size(512 << 20)), Scratch: val(workshop.Size(256 << 20)),
		Shm: val(workshop.Size(64 << 20)), Home: val(workshop.Size(256 << 20)),
		Resources: workshop.Resources{
			Memory: val(workshop.Size(2 << 30)), CPU: val(1.0), PIDs: val(int64(256)), Timeout: val(10 * time.Minute),
		},
	}
}

// sample is a workshop with n workers in one room.
func sample(t testing.TB, n int) *workshop.Workshop {
	t.Helper()
	w := &workshop.Workshop{File: "workshop.yaml", Name: val("code-review-workshop"), Container: sampleContainer(t)}
	for i := range n {
		w.Workers = append(w.Workers, workshop.Worker{Name: fmt.Sprintf("worker-%d", i), Source: at(20 + i), Container: w.Container})
	}
	return w
}

// sampleFacts is a machine on which the sample can run.
func sampleFacts() Facts {
	var refused []RefusedPath
	for _, r := range hostpath.For(hostpath.Caller{Homes: []string{"/home/user"}}) {
		refused = append(refused, RefusedPath(r))
	}
	return Facts{
		ProjectDir: "/work/project", Arch: "amd64", IPv6: true, Local: true, UID: 1000, GID: 1000, UserReason: "the caller",
		RuntimeDir: "/run/user/1000/workshop/x",
		Sources: map[string]SourceFacts{
			"./src":    {Exists: true, Dir: true, Real: "/work/project/src", UID: 1000, GID: 1000, Mode: 0o755},
			"./output": {Exists: true, Dir: true, Real: "/work/project/output", UID: 1000, GID: 1000, Mode: 0o755},
		},
		Refused: refused,
		Kernels: map[workshop.Kernel]KernelFacts{
			workshop.KernelSandboxed: {Mechanism: MechanismGVisor, Runtime: GVisorRuntime},
			workshop.KernelVM:        {Why: "none yet"},
		},
		InitImage: "sha256:1111", InitVolume: "workshop-init-2222",
	}
}

func compiled(t testing.TB, w *workshop.Workshop) *Compiled {
	t.Helper()
	c, err := Compile(w)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func withFacts(t testing.TB, c *Compiled, f Facts) *Compiled {
	t.Helper()
	out, list := WithFacts(c, f)
	if len(list) > 0 {
		t.Fatal(list)
	}
	return out
}
