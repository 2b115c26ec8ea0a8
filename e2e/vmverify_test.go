//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/verify"
)

// ofAWorkerInAVM are what verify finds to be held of a worker in a virtual machine without KVM
// (B13), which has a network and no endpoint (B34), without --live and --disruptive. Without
// root this machine doesn't show which namespaces it has.
const ofAWorkerInAVM = "B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B20 B22 B23 B24 B25 B26 B28 B30 B31 B41 B44 B45"

// TestVMVerify: of a worker in a virtual machine the same is judged as of one that has this
// machine's kernel; without KVM it isn't said to have another one (B13).
func TestVMVerify(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	s := inVM.Look(t, "verify judges of a worker in a virtual machine what it judges of others, sends nothing out and finds it sound")
	r := verifiedUnnoticed(s)
	held := strings.Fields(ofAWorkerInAVM)
	if scenario.TheEngine() == scenario.Rootless {
		held = slices.DeleteFunc(held, func(id string) bool { return id == "B6" || id == "B30" })
	}
	var got []string
	for _, l := range r.Lines {
		switch {
		case l.Worker != "worker":
		case l.Verdict == verify.Held:
			got = append(got, l.Promise)
			if l.Control == "" {
				t.Errorf("%s is held without a control", l.Promise)
			}
		case l.Verdict == verify.Broken, slices.Contains(held, l.Promise):
			t.Errorf("%s is %s: %s", l.Promise, l.Verdict, l.Why)
		case l.Promise == "B13" && !strings.Contains(l.Why, "not held: waived at `up` by --emulate"):
			t.Errorf("B13 is %s: %s", l.Verdict, l.Why)
		}
	}
	if !slices.Equal(got, held) {
		t.Errorf("held are %v, want %v", got, held)
	}
}

// TestVMVerifyBroken: verify sees what is changed of the container of a machine that runs.
func TestVMVerifyBroken(t *testing.T) {
	scenario.OnlyNamespace(t, onlyThere)
	scenario.NotRootless(t, "its control groups are changed")
	s := machineInVM(t, "verify finds broken that a virtual machine's container has no limit of processes any more")
	upInVM(s)
	unlimited(t, s.Containers()["worker"].Pid)
	r, code := verified(s)
	i := slices.IndexFunc(r.Lines, func(l verify.Line) bool { return l.Promise == "B5" && l.Worker == "worker" })
	if code != 4 || i < 0 || r.Lines[i].Verdict != verify.Broken {
		t.Errorf("exit code %d, B5 is line %d of %+v", code, i, r.Lines)
	}
}
