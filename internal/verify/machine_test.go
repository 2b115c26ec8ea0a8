package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/made"
)

// soundVM is a worker in a virtual machine with KVM, of which all is as it should be.
func soundVM() *Worker {
	own := soundOwn()
	w := sound()
	w.OwnKernel, w.VM, w.Machine = true, true, made.Kernel{BootID: "here"}
	w.Writable, w.Net, w.RoomBefore, w.RoomAfter = own.Writable, own.Net, own.RoomBefore, own.RoomAfter
	p := w.Outside.Process
	p.Status["Name"], p.Args, p.Devices = vmName, []string{"/workshop-vm", "run", "/machine.json"}, append(p.Devices, kvm)
	p.Below[0]["Name"] = vmName
	p.Below = append(p.Below, soundStatus())
	p.Below[1]["Name"] = qemuName
	for i := range p.Mounts {
		for target, place := range map[string]string{"/out": "/shares/rw/0", "/copy": "/shares/ro/0", "/run/secrets/token": "/shares/ro/1"} {
			if at, ok := strings.CutPrefix(p.Mounts[i].Target, target); ok {
				p.Mounts[i].Target = place + at
			}
		}
	}
	w.Outside.Guest = engine.Guest{"/shares/rw/0": "/out", "/shares/ro/0": "/copy", "/shares/ro/1": "/run/secrets/token"}
	w.Seen = Seen{}
	for _, x := range Probes(w) {
		seen := answer(x)
		switch kind, what, _ := strings.Cut(x.Key, "."); {
		case kind == "protected":
			seen = "EROFS"
		case kind == "untold":
			seen = "ECONNREFUSED"
		case kind == "ns":
			seen = what + ":[1]" // its kernel's may have the numbers of this machine's
		}
		w.Seen[x.Key] = Result{Name: x.Key, Seen: seen, Detail: detail(x), Millis: 0.5}
	}
	w.Seen["kernel.boot"] = Result{Seen: "ok", Detail: "there"}
	return w
}

// judgeVM judges a worker in a machine as it is seen.
func judgeVM(w *Worker) []Line {
	w.Outside.InMachine()
	return Judge(w)
}

// TestMachineSound: of a worker in a virtual machine is judged what is judged of one with
// another kernel.
func TestMachineSound(t *testing.T) {
	var got, want []string
	for _, l := range judgeVM(soundVM()) {
		got = append(got, l.Promise)
		verdict := Held
		if inPart(l.Promise) && l.Promise != "B13" {
			verdict = NotTested
		}
		if l.Verdict != verdict {
			t.Errorf("%s: %s (%s), want %s", l.Promise, l.Verdict, l.Why, verdict)
		}
	}
	for _, l := range Judge(soundOwn()) {
		want = append(want, l.Promise)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it says of %v, want %v", got, want)
	}
}

// TestMachineEmulated: without KVM B13 isn't held, and no device is given for it.
func TestMachineEmulated(t *testing.T) {
	w := soundVM()
	w.NotHeld = []string{"B13"}
	for _, l := range judgeVM(w) {
		switch l.Promise {
		case "B13":
			if l.Verdict != NotTested || l.Why != emulationWaived {
				t.Errorf("%s: %s", l.Verdict, l.Why)
			}
		case "B6":
			if l.Verdict != Broken || !strings.Contains(l.Why, kvm) {
				t.Errorf("B6: %s: %s", l.Verdict, l.Why)
			}
		}
	}
}

// TestMachineBroken: each oracle for a virtual machine can fail.
func TestMachineBroken(t *testing.T) {
	say := func(key, seen string) func(*Worker) {
		return func(w *Worker) { w.Seen[key] = Result{Name: key, Seen: seen, Detail: seen, Millis: 1} }
	}
	process := func(change func(*Process)) func(*Worker) { return func(w *Worker) { change(w.Outside.Process) } }
	at := func(target, mode string) func(*Worker) {
		return process(func(p *Process) { p.at(target).Options = []string{mode, "nosuid"} })
	}
	for _, tt := range []struct {
		name, promises string
		change         func(*Worker)
	}{
		{"a raw socket in the guest", "B1", say("cap.raw socket", "ok")},
		{"QEMU has a capability", "B1", process(func(p *Process) { p.Below[1]["CapEff"] = "0000000000001000" })},
		{"QEMU has no filter", "B2", process(func(p *Process) { p.Below[1]["Seccomp"] = "0" })},
		{"its guest has no filter", "B2", say("priv.Seccomp", "0")},
		{"the machine's root can be written", "B3", at("/", "rw")},
		{"this machine's settings can be written", "B3", at("/proc/sys", "rw")},
		{"a place beside the mounts can be written", "B3", process(func(p *Process) {
			p.Mounts = append(p.Mounts, procinfo.Mount{Target: "/kit", Type: "ext4", Options: []string{"rw", "nosuid"}})
		})},
		{"the machine is root", "B4", process(func(p *Process) { p.Below[1]["Uid"] = "0 0 0 0" })},
		{"no limit of threads", "B5", process(func(p *Process) { p.Groups.PIDs = 0 })},
		{"this machine's IPC", "B6", process(func(p *Process) { p.Namespaces["ipc"] = p.Here["ipc"] })},
		{"another device", "B6", process(func(p *Process) { p.Devices = append(p.Devices, "vhost-net") })},
		{"a source that is refused", "B7", func(w *Worker) { w.Outside.Binds["/out"] = "/etc" }},
		{"a hook is served writable", "B8", at("/shares/rw/0/.git", "rw")},
		{"a hook can be written in the guest", "B8", say("protected./out/.git", "ok")},
		{"nothing is over .git", "B8", process(func(p *Process) {
			p.Mounts = slices.DeleteFunc(p.Mounts, func(m procinfo.Mount) bool { return m.Target == "/shares/rw/0/.git" })
		})},
		{"a copy is served writable", "B3 B9", at("/shares/ro/0", "rw")},
		{"a secret is served writable", "B3 B11", at("/shares/ro/1", "rw")},
		{"another program runs the machine", "B12", process(func(p *Process) { p.Args[0] = "/usr/bin/qemu-system-x86_64" })},
		{"this machine's kernel", "B13", say("kernel.boot", "here")},
		{"no KVM", "B13", process(func(p *Process) { p.Devices = []string{"null", "zero"} })},
		{"no machine", "B13", process(func(p *Process) { p.Below = p.Below[:1] })},
		{"a cable", "B20", process(func(p *Process) { p.Interfaces = []string{"eth0", "lo"} })},
		{"a card in the guest", "B20", say("net.interfaces", "eth0,lo")},
		{"the guard's port is taken", "B22", func(w *Worker) { w.RoomAfter.Process.Listening = w.RoomAfter.Process.Listening[:1] }},
		{"a network that isn't its room's", "B30", process(func(p *Process) { p.Namespaces["net"] = "net:[9]" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := soundVM()
			tt.change(w)
			w.Outside.InMachine()
			breaks(t, w, tt.promises)
		})
	}
}

// TestMachineUnseen: what the guest says of its namespaces is about others than this machine's.
func TestMachineUnseen(t *testing.T) {
	w := soundVM()
	w.Outside.Process.Namespaces = map[string]string{}
	w.Outside.Process.Unread["namespaces"] = "no"
	for _, l := range judgeVM(w) {
		if want := inPart(l.Promise) && l.Promise != "B13" || l.Promise == "B6" || l.Promise == "B30"; l.Verdict == Broken || want != (l.Verdict == NotTested) {
			t.Errorf("%s: %s (%s)", l.Promise, l.Verdict, l.Why)
		}
	}
}
