package verify

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/made"
)

// soundOwn is a worker with a kernel of its own of which all is as it should be: gVisor's
// processes as they were seen here, and what its kernel answers.
func soundOwn() *Worker {
	w := sound()
	w.OwnKernel, w.Runtime, w.Machine = true, "workshop-runsc", made.Kernel{BootID: "here", Version: "Linux version 6.1"}
	room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Allow: []firewall.Rule{{Host: pattern("ssh.example.org"), Ports: []firewall.PortRange{{First: 22, Last: 22}}}, endpointRule("api", "api.example.org", "GET,HEAD /repos/**")}}
	n := w.Net
	n.Tries.Carry(&room)
	n.Denials = slices.DeleteFunc(n.Denials, func(d Denial) bool { return d.Port != 0 && d.Port != 22 && d.Port != 80 && d.Port != 443 })
	for _, a := range []netip.Addr{n.Tries.Address, metadata, n.Tries.Private} {
		n.Denials = append(n.Denials, Denial{Kind: "kernel", Address: a.String(), Port: n.Tries.Port, Reason: "not-allowed"})
	}
	files := w.Outside.Process
	main := soundOutside().Process
	for i, p := range []*Process{main, files} {
		p.Status["Name"], p.Args, p.Below = "exe", []string{"runsc-sandbox", "boot"}, nil
		p.Status["Pid"], p.Status["NSpid"] = []string{"400", "399"}[i], []string{"400 1", "399 1"}[i]
		p.Status["Uid"], p.Status["Gid"] = "0 0 0 0", "0 0 0 0"
		for _, set := range []string{"CapPrm", "CapEff", "CapBnd"} {
			p.Status[set] = []string{"000000000008001f", "00000000000400df"}[i]
		}
		p.Namespaces["user"], p.Here["user"] = "user:[3]", "user:[1]"
		p.Namespaces["cgroup"] = p.Here["cgroup"]
		p.Devices = nil
	}
	main.Below = []map[string]string{soundStatus()}
	main.Below[0]["CapEff"], main.Below[0]["Name"] = "000000000008001f", "exe"
	main.Mounts = []procinfo.Mount{{Target: "/", Type: "tmpfs", Options: []string{"ro"}}}
	files.Mounts = slices.DeleteFunc(files.Mounts, func(m procinfo.Mount) bool {
		return m.Type == "proc" || m.Type == "sysfs" || m.Type == "cgroup2" || strings.HasPrefix(m.Target, "/sys") || m.Target == "/run/workshop"
	})
	w.Writable = []string{"/data"} // a volume of its image, which is memory of its kernel
	w.Outside.Process, w.Outside.Files, w.Outside.NoSetuid = main, files, false
	w.Outside.Settings = &engine.Settings{
		CapDrop: []string{"ALL"}, Security: []string{"no-new-privileges", "seccomp=(9000 bytes)"}, ReadOnly: true, User: "1000:1000", Runtime: "workshop-runsc",
		Memory: 128 << 20, Swap: 128 << 20, CPUs: 0.5, PIDs: 64, Main: []string{"/opt/workshop/workshop-init", "gate"}, Namespaces: map[string]string{"pid": "", "ipc": "private"},
	}
	ofRoom := func() *Outside {
		o := soundOutside()
		o.Process.Network, o.Process.Listening = "127.0.0.1", []string{"0.0.0.0:531", "127.0.0.1:536"}
		return o
	}
	w.RoomBefore, w.RoomAfter = ofRoom(), ofRoom()
	w.Seen = Seen{}
	for _, p := range Probes(w) {
		w.Seen[p.Key] = Result{Name: p.Key, Seen: ownAnswer(p), Detail: detail(p), Millis: 0.5}
	}
	w.Seen["kernel.boot"] = Result{Seen: "ok", Detail: "there"}
	w.Seen["kernel.version"] = Result{Seen: "ok", Detail: "Linux version 4.19.0-gvisor"}
	return w
}

// ownAnswer is what a probe saw on gVisor, where that differs.
func ownAnswer(p Probe) string {
	switch kind, what, _ := strings.Cut(p.Key, "."); {
	case p.Key == "priv.NoNewPrivs", p.Key == "cap.CapAmb", p.Key == "priv.Seccomp":
		return "none"
	case what == "setns", what == "clone3":
		return "EBADF"
	case p.Key == "call.user namespace", p.Key == "room.mark", p.Key == "room.transparent", strings.HasPrefix(p.Key, "room.port"), p.Key == "init.workshop-init":
		return "ok"
	case p.Key == "room.rules":
		return "EPROTONOSUPPORT"
	case p.Key == "socket.AF_VSOCK":
		return "EAFNOSUPPORT"
	case p.Key == "host./proc/1/fd":
		return "0,1,2"
	case kind == "ns":
		return what + ":[4]"
	case p.Key == "writable":
		return "/data,/out,/tmp"
	case kind == "untold":
		return "ECONNREFUSED"
	}
	return answer(p)
}

// TestOwnKernelSound: what is judged of a worker of this machine's kernel is judged of one with
// its own, too, and B13 besides.
func TestOwnKernelSound(t *testing.T) {
	var got []string
	for _, l := range Judge(soundOwn()) {
		got = append(got, l.Promise)
		want := Held
		if inPart(l.Promise) && l.Promise != "B13" {
			want = NotTested
		}
		if l.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", l.Promise, l.Verdict, l.Why, want)
		}
	}
	want := []string{"B13"}
	for _, l := range Judge(sound()) {
		want = append(want, l.Promise)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("it says of %v, want %v", got, want)
	}
}

// TestOwnKernelBroken: each oracle for a kernel of its own can fail.
func TestOwnKernelBroken(t *testing.T) {
	say := func(key, seen string) func(*Worker) {
		return func(w *Worker) { w.Seen[key] = Result{Name: key, Seen: seen, Detail: seen, Millis: 1} }
	}
	main := func(change func(*Process)) func(*Worker) { return func(w *Worker) { change(w.Outside.Process) } }
	files := func(change func(*Process)) func(*Worker) { return func(w *Worker) { change(w.Outside.Files) } }
	settings := func(change func(*engine.Settings)) func(*Worker) {
		return func(w *Worker) { change(w.Outside.Settings) }
	}
	at := func(p *Process, target, mode string) { p.at(target).Options = []string{mode, "nosuid"} }
	for _, tt := range []struct {
		name, promises string
		change         func(*Worker)
	}{
		{"a raw socket", "B1", say("cap.raw socket", "ok")},
		{"its kernel gives it a capability", "B1", say("cap.CapEff", "0000000000000001")},
		{"a capability was added", "B1", settings(func(s *engine.Settings) { s.CapAdd = []string{"NET_RAW"} })},
		{"its kernel may use the machine's raw sockets", "B1", main(func(p *Process) { p.Status["CapEff"] = "000000000008201f" })},
		{"a process of its kernel has more", "B1", main(func(p *Process) { p.Below[0]["CapEff"] = "00000000000a001f" })},
		{"its kernel is root of this machine", "B1 B22", main(func(p *Process) { p.Namespaces["user"] = p.Here["user"] })},
		{"what opens its files is root of this machine", "B1", files(func(p *Process) { p.Namespaces["user"] = p.Here["user"] })},
		{"a call is let through", "B2", say("call.mount", "ok")},
		{"no filter of its kernel", "B2", main(func(p *Process) { p.Status["Seccomp"] = "0" })},
		{"no filter of a process below", "B2", main(func(p *Process) { p.Below[0]["Seccomp"] = "0" })},
		{"new privileges of what opens its files", "B2", files(func(p *Process) { p.Status["NoNewPrivs"] = "0" })},
		{"privileged", "B2", settings(func(s *engine.Settings) { s.Privileged = true })},
		{"no profile", "B2", settings(func(s *engine.Settings) { s.Security = s.Security[:1] })},
		{"its root can be written", "B3", files(func(p *Process) { at(p, "/", "rw") })},
		{"a write at the root", "B3", say("write./.workshop-verify", "ok")},
		{"the engine's root is writable", "B3", settings(func(s *engine.Settings) { s.ReadOnly = false })},
		{"another place is writable", "B3", say("writable", "/out,/usr")},
		{"root inside", "B4", say("uid", "0:0")},
		{"the engine starts root", "B4", settings(func(s *engine.Settings) { s.User = "0:0" })},
		{"no limit of its threads", "B5 B60", main(func(p *Process) { p.Groups.PIDs = 0 })},
		{"more memory", "B5", main(func(p *Process) { p.Groups.Memory *= 2 })},
		{"the machine's IPC", "B6", main(func(p *Process) { p.Namespaces["ipc"] = p.Here["ipc"] })},
		{"the machine's network of what opens its files", "B6", files(func(p *Process) { p.Namespaces["net"] = p.Here["net"] })},
		{"a device", "B6", files(func(p *Process) { p.Devices = []string{"kvm"} })},
		{"a device of the engine", "B6", settings(func(s *engine.Settings) { s.Devices = []string{"/dev/kvm"} })},
		{"the machine's disk in its kernel", "B6", main(func(p *Process) {
			p.Mounts = append(p.Mounts, procinfo.Mount{Target: "/host", Type: "ext4", Options: []string{"rw"}})
		})},
		{"an engine's socket", "B6", say("host./var/run/docker.sock", "EINVAL")},
		{"PID 1 can be read", "B6 B12", say("host./proc/1/environ", "ok")},
		{"PID 1 can be followed", "B6 B12", say("host./proc/1/exe", "/opt/workshop/workshop-init")},
		{"the machine's proc in a mount", "B7", files(func(p *Process) { p.at("/out").Type = "proc" })},
		{"a hook is writable", "B8", files(func(p *Process) { at(p, "/out/.git", "rw") })},
		{"nothing is over .git", "B8", files(func(p *Process) {
			p.Mounts = slices.DeleteFunc(p.Mounts, func(m procinfo.Mount) bool { return m.Target == "/out/.git" })
		})},
		{"a copy is writable", "B3 B9", files(func(p *Process) { at(p, "/copy", "rw") })},
		{"another's secret is mounted", "B11", files(func(p *Process) {
			p.Mounts = append(p.Mounts, procinfo.Mount{Target: "/run/secrets/other", Type: "tmpfs", Options: []string{"ro"}})
		})},
		{"a shell", "B12", say("pid1.Name", "sh")},
		{"the engine starts a shell", "B12", settings(func(s *engine.Settings) { s.Main = []string{"/bin/sh", "-c"} })},
		{"this machine's kernel", "B13", say("kernel.boot", "here")},
		{"its main process is one of this machine's kernel", "B13", main(func(p *Process) { p.Below[0]["Name"] = initName })},
		{"a cable", "B20 B30", main(func(p *Process) { p.Interfaces = []string{"eth0", "lo"} })},
		{"it comes back by itself", "B21", func(w *Worker) { w.Outside.Restart = "always" }},
		{"a route", "B22", say("room.route", "ok")},
		{"rules", "B22", say("room.rules", "ok")},
		{"its room has another address", "B22", func(w *Worker) { w.RoomAfter.Process.Network = "10.0.0.1" }},
		{"the guard's port is taken", "B22", func(w *Worker) { w.RoomAfter.Process.Listening = w.RoomAfter.Process.Listening[:1] }},
		{"a name is resolved", "B23", say("dns.vtest.example.com", "198.51.100.1")},
		{"a handshake", "B24", say("tls.https://vtest.example.com", "handshake")},
		{"a port that nobody is told of is open", "B25", func(w *Worker) {
			say("untold."+netip.AddrPortFrom(w.Net.Tries.Address, w.Net.Tries.Untold).String(), "open")(w)
		}},
		{"a denial isn't told", "B25 B28", func(w *Worker) {
			a := w.Net.Tries.Address.String()
			w.Net.Denials = slices.DeleteFunc(w.Net.Denials, func(d Denial) bool { return d.Kind == "kernel" && d.Address == a })
		}},
		{"metadata", "B26", say("never.http://169.254.169.254", "200")},
		{"another runtime", "B30", settings(func(s *engine.Settings) { s.Runtime = "runsc" })},
		{"a network that isn't its room's", "B30", main(func(p *Process) { p.Namespaces["net"] = "net:[9]" })},
		{"the tools can be written", "B3 B41", func(w *Worker) { at(w.Outside.Files, "/opt/workshop", "rw") }},
		{"a tool that isn't listed", "B41", func(w *Worker) { w.Toolbox.Unlisted[0].Answer = "it would run" }},
		{"a terminal", "B43", main(func(p *Process) { p.Status["tty"] = "34816" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := soundOwn()
			tt.change(w)
			breaks(t, w, tt.promises)
		})
	}
}

// TestOwnKernelUnseen: what can't be seen of a kernel of its own is not held, and not broken.
func TestOwnKernelUnseen(t *testing.T) {
	for _, tt := range []struct {
		name, promises string // that are no longer held
		change         func(*Worker)
	}{
		{"what opens its files isn't found", "B1 B2 B3 B5 B6 B8 B9 B11 B41", func(w *Worker) { w.Outside.Files, w.Outside.FilesHidden = nil, "none is it" }},
		{"no settings", "B1 B2 B4 B6 B12 B30", func(w *Worker) { w.Outside.Settings = nil }},
		{"without root", "B1 B2 B3 B5 B6 B8 B9 B11 B22 B30 B41", func(w *Worker) { // as a user of docker's group sees it
			p := w.Outside.Process
			p.Namespaces, p.Mounts, p.Devices = map[string]string{}, nil, nil
			p.Unread = map[string]string{"namespaces": "no", "mounts": "no", "devices": "no"}
			w.Outside.Files, w.Outside.FilesHidden = nil, "it can't be told"
		}},
		{"the room can't be seen", "B22 B30", func(w *Worker) { w.RoomBefore, w.RoomAfter = &Outside{Why: "gone"}, &Outside{Why: "gone"} }},
		{"the room shows nothing", "B22", func(w *Worker) { w.RoomBefore.Process.Network, w.RoomAfter.Process.Network = "", "" }},
		{"this machine's kernel isn't known", "B13", func(w *Worker) { w.Machine = made.Kernel{} }},
		{"the engine names another process", "B1 B2 B6 B20 B22 B30", func(w *Worker) { w.Outside.Process.Status["NSpid"] = "400" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := soundOwn()
			tt.change(w)
			for _, l := range Judge(w) {
				want := slices.Contains(strings.Fields(tt.promises), l.Promise) || inPart(l.Promise) && l.Promise != "B13"
				if l.Verdict == Broken || want != (l.Verdict == NotTested) {
					t.Errorf("%s: %s (%s)", l.Promise, l.Verdict, l.Why)
				}
			}
		})
	}
}

// TestCarry: what is tried of a worker whose connections are carried is told to the guard, and
// nothing that the policy allows is.
func TestCarry(t *testing.T) {
	tries := func(rules ...firewall.Rule) Tries {
		p := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: rules}
		x := ChooseTries(&p, "v1", 3, netip.MustParseAddrPort("127.1.2.3:61000"))
		x.Carry(&p)
		return x
	}
	told := firewall.ToldPorts
	x := tries(firewall.Rule{Host: pattern("ssh.example.org"), Ports: []firewall.PortRange{{First: told[0], Last: told[0]}}})
	if x.Port != told[1] || x.Never != told[1] || slices.Contains(told, x.Untold) || x.Untold == 0 || !x.From.IsValid() || !x.Private.IsValid() {
		t.Errorf("%+v", x)
	}
	x = tries(firewall.Rule{CIDR: netip.MustParsePrefix("10.0.0.0/8"), Ports: []firewall.PortRange{{First: 1, Last: 1023}}})
	if x.Port != 0 || x.Private.IsValid() {
		t.Errorf("private addresses are allowed: %+v", x)
	}
}

// TestOwnFilled: beyond its limits a worker with a kernel of its own ends, or is told so; what
// goes on beyond them is a break, and so is a guard that ends with it.
func TestOwnFilled(t *testing.T) {
	sound := func() *OwnFill {
		f := &OwnFill{Seen: Seen{}}
		for _, p := range OwnFillProbes() {
			f.Seen[p.Key] = Result{Seen: "ok"}
		}
		f.Seen["fill.scratch"] = Result{Seen: "ENOSPC"}
		for _, b := range []*Beyond{&f.Memory, &f.Processes} {
			*b = Beyond{Ended: true, Before: soundOutside(), After: soundOutside()}
		}
		return f
	}
	for _, tt := range []struct {
		name   string
		change func(*OwnFill)
		want   Verdict
	}{
		{"sound", func(*OwnFill) {}, Held},
		{"it is told", func(f *OwnFill) {
			f.Processes = Beyond{Seen: Seen{"fill.processes": {Seen: "EAGAIN"}}, Before: soundOutside(), After: soundOutside()}
		}, Held},
		{"so much memory isn't promised", func(f *OwnFill) { f.Memory.Ended, f.Memory.Seen = false, Seen{"fill.memory": {Seen: "exit 1"}} }, Held},
		{"all memory can be had", func(f *OwnFill) { f.Memory.Ended, f.Memory.Seen = false, Seen{"fill.memory": {Seen: "ok"}} }, Broken},
		{"all processes can be had", func(f *OwnFill) { f.Processes.Ended, f.Processes.Seen = false, Seen{"fill.processes": {Seen: "ok"}} }, Broken},
		{"scratch has no end", func(f *OwnFill) { f.Seen["fill.scratch"] = Result{Seen: "ok"} }, Broken},
		{"the guard ends, too", func(f *OwnFill) { f.Memory.After.Process.Status["Pid"] = "301" }, Broken},
		{"nothing is known of it", func(f *OwnFill) { f.Memory.Ended = false }, NotTested},
		{"no memory at all", func(f *OwnFill) { f.Seen["control.memory"] = Result{Seen: "killed"} }, NotTested},
		{"it didn't start", func(f *OwnFill) { f.Unseen = "it can't start" }, NotTested},
	} {
		f := sound()
		tt.change(f)
		if l := FilledOwn("worker", f); l.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, l.Verdict, l.Why, tt.want)
		}
	}
	if memory, processes := BeyondProbes(); len(memory) != 1 || len(processes) != 1 || len(OwnFillProbes()) != len(FillProbes())-2 {
		t.Errorf("%v, %v, %v", memory, processes, OwnFillProbes())
	}
}
