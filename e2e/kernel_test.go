//go:build linux

package e2e

import (
	"runtime"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/testutil"
)

func TestB20_KernelWithoutNetfilter(t *testing.T) {
	if !scenario.Alone(t) {
		return
	}
	// What this thread starts has no netfilter: the engine, so its containers.
	runtime.LockOSThread()
	if err := testutil.WithoutNetfilter(); err != nil {
		t.Fatal(err)
	}
	scenario.NewEngine(t, "--iptables=false", "--ip6tables=false")
	s := scenario.New(t, "restricted", "on a kernel that can't close a room, up fails, names what is missing and what to do, and no worker passes its gate")
	up := s.Expect(1, "up")
	for _, want := range []string{"the kernel lacks nfnetlink, nf_tables and nft_compat", "sudo modprobe -a nfnetlink nf_tables nft_compat", "network: none"} {
		if !strings.Contains(up.Err, want) {
			t.Errorf("up doesn't say %q:\n%s", want, up.Err)
		}
	}
	if c, ok := s.Containers()["worker"]; ok && c.State == "running" && strings.Contains(s.Logs("worker"), "READY") {
		t.Error("the worker passed its gate")
	}
	s.Expect(0, "down")
}
