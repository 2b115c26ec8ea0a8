package verify

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/lib/cgroup"
	"github.com/llmdo/workshop/internal/lib/procinfo"
	"github.com/llmdo/workshop/internal/promise"
)

// TestEveryPromiseHasAMethod: the table names each promise once, in order, and says what
// it does.
func TestEveryPromiseHasAMethod(t *testing.T) {
	var got, want []string
	for _, m := range Methods() {
		got = append(got, m.Promise)
		inspected, probed := slices.Contains(m.Kinds, Inspected), slices.Contains(m.Kinds, Probed)
		switch {
		case len(m.Kinds) == 0:
			t.Errorf("%s: no kind", m.Promise)
		case inspected && m.Outside == "", probed && m.Inside == "", (inspected || probed) && m.Rests == "":
			t.Errorf("%s is %v, and the table doesn't say by what", m.Promise, m.Kinds)
		case slices.Contains(m.Kinds, Elsewhere) && len(m.Kinds) > 1:
			t.Errorf("%s: %v", m.Promise, m.Kinds)
		}
	}
	for _, p := range promise.All() {
		want = append(want, p.ID)
	}
	for _, id := range append(sortedKeys(otherwise), sortedKeys(inAMachine)...) {
		if !slices.Contains(got, id) {
			t.Errorf("%s: no such promise", id)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v, want %v", got, want)
	}
}

// TestDocument: docs/verify.md is what `make generate` writes.
func TestDocument(t *testing.T) {
	old, err := os.ReadFile("../../docs/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	made, err := Document(string(old))
	if err != nil {
		t.Fatal(err)
	}
	if made != string(old) {
		t.Error("docs/verify.md is not up to date: run make generate")
	}
	if _, err := Document("no table"); err == nil {
		t.Error("a document without a place for the table is taken")
	}
}

// sound is a worker of which all is as it should be, on the namespace engine.
func sound() *Worker {
	from := netip.MustParseAddrPort("127.1.2.3:61000")
	room := firewall.RoomPolicy{Room: "room", Mode: firewall.Restricted, Allow: []firewall.Rule{{Host: pattern("ssh.example.org"), Ports: []firewall.PortRange{{First: 22, Last: 22}}}, endpointRule("api", "api.example.org", "GET,HEAD /repos/**")}}
	w := &Worker{
		Name: "worker", Mode: firewall.Restricted, Memory: 128 << 20, CPUs: 0.5, PIDs: 64,
		Mounts:    []Mount{{Target: "/out", ReadWrite: true}, {Target: "/copy", Copy: true, Excluded: "a.pem", Kept: "a"}},
		Protected: []Protected{{Target: "/out/.git"}}, Secrets: []string{"token"}, Env: map[string]bool{"COLOUR": true}, Caller: []string{"MY_TOKEN=0123456789"},
		Refusal: func(s string) string {
			if strings.HasPrefix(s, "/etc") {
				return "is /etc"
			}
			return ""
		},
		Net: &Net{Room: "room", Tries: ChooseTries(&room, "vtest", 7, from), Canary: Canary{Address: "198.51.100.9:4000", Control: true}, RefusedAfter: 9,
			Explained: map[string]Answer{"169.254.169.254": {Reason: "metadata"}}},
	}
	n := w.Net
	for _, kind := range []string{"dns", "tls", "http"} {
		n.Denials = append(n.Denials, Denial{Kind: kind, Name: n.Tries.Name, Reason: "not-allowed"})
	}
	n.Denials = append(n.Denials, Denial{Kind: "dns", Name: n.Tries.Special, Reason: "special-name"})
	for _, port := range []uint16{n.Tries.Port, n.Tries.Named} {
		n.Denials = append(n.Denials, Denial{Address: n.Tries.Address.String(), Port: port, Reason: "not-allowed"})
	}
	n.Denials = append(n.Denials, Denial{Address: "169.254.169.254", Port: 80, Reason: "metadata"}, Denial{Address: "169.254.169.254", Port: 9000, Reason: "metadata"},
		Denial{Address: n.Tries.Private.String(), Port: 9000, Reason: "not-allowed"},
		Denial{Kind: "endpoint", Name: "api.example.org", Port: 443, Reason: "request"}, Denial{Kind: "tls", Name: "api.example.org", Port: 443, Reason: "endpoint"})
	w.Outside = soundOutside()
	w.Toolbox = Toolbox{Unlisted: []Asked{{"shell", NotOffered}, {"exec", NotOffered}}, Control: "read_file (listed): it would run"}
	w.Seen = Seen{}
	for _, p := range Probes(w) {
		w.Seen[p.Key] = Result{Name: p.Key, Seen: answer(p), Detail: detail(p), Millis: 0.5}
	}
	return w
}

func pattern(s string) firewall.HostPattern {
	p, err := firewall.ParseHostPattern(s)
	if err != nil {
		panic(err)
	}
	return p
}

func soundStatus() map[string]string {
	s := map[string]string{"Name": "workshop-init", "Pid": "300", "PPid": "200", "Uid": "1000 1000 1000 1000", "Gid": "1000 1000 1000 1000", "NSpid": "300 9 1", "NoNewPrivs": "1", "Seccomp": "2", "tty": "0"}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		s[set] = noCapability
	}
	return s
}

func soundOutside() *Outside {
	mount := func(target, kind, options string, super ...string) procinfo.Mount {
		return procinfo.Mount{Target: target, Type: kind, Root: "/x", Options: strings.Split(options, ","), Super: super}
	}
	p := &Process{
		Status: soundStatus(), Args: []string{"/opt/workshop/workshop-init", "gate"}, Below: []map[string]string{soundStatus()},
		Limits: map[string]string{"Max open files": "4096", "Max pending signals": "1024"},
		Groups: &cgroup.Enforced{Memory: 128 << 20, CPUs: 0.5, PIDs: 64, Member: true},
		Mounts: []procinfo.Mount{
			mount("/", "tmpfs", "ro,nosuid"), mount("/proc", "proc", "rw,nosuid"), mount("/proc/sys", "proc", "ro,nosuid"), mount("/sys", "sysfs", "ro,nosuid"),
			mount("/sys/firmware", "tmpfs", "ro,nosuid"), mount("/sys/fs/cgroup", "cgroup2", "ro,nosuid"), mount("/tmp", "tmpfs", "rw,nosuid", "rw", "size=64k"),
			mount("/out", "ext4", "rw,nosuid"), mount("/out/.git", "ext4", "ro,nosuid"), mount("/copy", "ext4", "ro,nosuid"),
			mount("/run/secrets/token", "tmpfs", "ro,nosuid"), mount("/run/workshop", "tmpfs", "ro,nosuid"), mount("/opt/workshop", "ext4", "ro,nosuid"),
		},
		Interfaces: []string{"lo"}, Namespaces: map[string]string{}, Here: map[string]string{}, Devices: []string{"null", "zero"}, Unread: map[string]string{},
	}
	for _, kind := range kinds {
		p.Namespaces[kind], p.Here[kind] = kind+":[2]", kind+":[1]"
	}
	return &Outside{Process: p, Witness: engine.Witness{
		PID: 300, Restart: "no", LogBounded: true, NoSetuid: true, Env: []string{"HOME=/home/worker", "COLOUR=green"}, Binds: map[string]string{"/out": "/home/me/p/out"},
	}}
}

// answer is what a probe sees in a sound worker.
func answer(p Probe) string {
	kind, what, _ := strings.Cut(p.Key, ".")
	switch {
	case strings.HasPrefix(p.Text, "status Cap"):
		return noCapability
	case p.Key == "priv.NoNewPrivs":
		return "1"
	case p.Key == "priv.Seccomp":
		return "2"
	case p.Key == "control.dns":
		return "127.0.0.1"
	case p.Key == "control./proc/self/fd":
		return "0,1,2,3"
	case kind == "control":
		return "ok"
	case p.Key == "uid":
		return "1000:1000"
	case p.Key == "pid1.Name":
		return "workshop-init"
	case p.Key == "pid1.PPid":
		return "0"
	case p.Key == "environ":
		return "COLOUR,HOME"
	case p.Key == "writable":
		return "/out,/tmp"
	case p.Key == "secrets":
		return "token"
	case kind == "secret", kind == "kept":
		return "1000:1000 0400"
	case p.Key == "mount./out":
		return "rw"
	case kind == "mount", kind == "protected":
		return "ro"
	case kind == "excluded":
		return "ENOENT"
	case p.Key == "net.interfaces":
		return "lo"
	case kind == "ns":
		return what + ":[2]"
	case kind == "dns" && !strings.HasPrefix(p.Text, "dns 198"):
		return "NXDOMAIN"
	case kind == "none", kind == "dns":
		return "ENETUNREACH"
	case kind == "tls", kind == "around":
		return "TLSALERT"
	case kind == "http", kind == "endpoint":
		return "403"
	case kind == "endpoint-host":
		return "400"
	case kind == "port", kind == "named", kind == "never", kind == "udp":
		return "ECONNREFUSED"
	case kind == "host":
		return "EACCES"
	}
	return "EPERM"
}

// lineOf is the line of a promise.
func lineOf(t *testing.T, w *Worker, id string) Line {
	t.Helper()
	all := Judge(w)
	i := slices.IndexFunc(all, func(l Line) bool { return l.Promise == id })
	if i < 0 {
		t.Fatalf("no line of %s", id)
	}
	return all[i]
}

// inPart reports whether a promise isn't held by what is seen without --disruptive.
func inPart(id string) bool {
	m := MethodOf(id)
	return m.Partly || id != "B5" && slices.Contains(m.Kinds, Disruptive)
}

// TestSound: of a worker that is as it should be nothing is broken, and all is held that
// the table says can be.
func TestSound(t *testing.T) {
	for _, l := range Judge(sound()) {
		want := Held
		if inPart(l.Promise) {
			want = NotTested
		}
		if l.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", l.Promise, l.Verdict, l.Why, want)
		}
	}
}

// TestBroken: each thing that a promise excludes makes its line broken, wherever it is
// seen, and no other.
func TestBroken(t *testing.T) {
	say := func(key, seen string) func(*Worker) {
		return func(w *Worker) { w.Seen[key] = Result{Name: key, Seen: seen, Millis: 1} }
	}
	shown := func(change func(*Process)) func(*Worker) { return func(w *Worker) { change(w.Outside.Process) } }
	status := func(field, value string) func(*Worker) {
		return shown(func(p *Process) { p.Status[field] = value })
	}
	mount := func(m procinfo.Mount) func(*Worker) {
		return shown(func(p *Process) { m.Options = append(m.Options, "nosuid"); p.Mounts = append(p.Mounts, m) })
	}
	undenied := func(is func(Denial) bool) func(*Worker) {
		return func(w *Worker) { w.Net.Denials = slices.DeleteFunc(w.Net.Denials, is) }
	}
	for _, tt := range []struct {
		name, promises string
		change         func(*Worker)
	}{
		{"a raw socket", "B1", say("cap.raw socket", "ok")},
		{"a bounding set", "B1", status("CapBnd", "00000000a80425fb")},
		{"a capability of a process below", "B1", shown(func(p *Process) { p.Below[0]["CapEff"] = "1" })},
		{"new privileges", "B2", status("NoNewPrivs", "0")},
		{"a call is let through", "B2", say("call.setns", "EBADF")},
		{"vsock", "B2", say("socket.AF_VSOCK", "ok")},
		{"a mount where setuid counts", "B2", shown(func(p *Process) { p.Mounts[7].Options = []string{"rw"} })},
		{"the root is writable", "B3", shown(func(p *Process) { p.Mounts[0].Options = []string{"rw", "nosuid"} })},
		{"a write at the root", "B3", say("write./.workshop-verify", "ok")},
		{"a mount that nobody declared", "B3", mount(procinfo.Mount{Target: "/data", Type: "ext4", Options: []string{"rw"}})},
		{"a memory file system without a size", "B3", mount(procinfo.Mount{Target: "/more", Type: "tmpfs", Options: []string{"rw"}})},
		{"writable by the probe", "B3", say("writable", "/out,/usr")},
		{"settings of the kernel", "B3", shown(func(p *Process) { p.Mounts[2].Options = []string{"rw", "nosuid"} })},
		{"firmware is not hidden", "B3", shown(func(p *Process) { p.Mounts = slices.Delete(p.Mounts, 4, 5) })},
		{"mounts are handed on", "B3", shown(func(p *Process) { p.Mounts[7].Peers = true })},
		{"root", "B4", status("Uid", "0 0 0 0")},
		{"root's group", "B4", status("Groups", "0")},
		{"no limit of processes", "B5", shown(func(p *Process) { p.Groups.PIDs = 0 })},
		{"more memory", "B5", shown(func(p *Process) { p.Groups.Memory *= 2 })},
		{"swap", "B5", shown(func(p *Process) { p.Groups.Swap = -1 })},
		{"an endless log", "B5", func(w *Worker) { w.Outside.LogBounded = false }},
		{"the machine's IPC", "B6", shown(func(p *Process) { p.Namespaces["ipc"] = "ipc:[1]" })},
		{"a device", "B6", shown(func(p *Process) { p.Devices = append(p.Devices, "kmsg") })},
		{"the engine's socket", "B6", say("host./var/run/docker.sock", "EINVAL")},
		{"its first process can be traced", "B6", shown(func(p *Process) { p.Owner = 1000 })},
		{"the supervisor's processes", "B6 B21", status("NSpid", "300 1")},
		{"a replaced source", "B7", func(w *Worker) { w.Replaced = []string{"/out"} }},
		{"a socket that came later", "B7", func(w *Worker) { w.Sockets = []string{"/home/u/out/s"} }},
		{"a refused source", "B7", func(w *Worker) { w.Outside.Binds["/out"] = "/etc/cron.d" }},
		{"a hook is writable", "B8", shown(func(p *Process) { p.Mounts[8].Options = []string{"rw", "nosuid"} })},
		{"nothing is over .git", "B8", shown(func(p *Process) { p.Mounts = slices.Delete(p.Mounts, 8, 9) })},
		{"an excluded file", "B9", say("excluded./copy", "1000:1000 0644")},
		{"a worker publishes", "B10", func(w *Worker) { w.Outside.Published = []string{"0.0.0.0:8080"} }},
		{"another's secret", "B11", say("secrets", "other,token")},
		{"another's secret is mounted", "B11", mount(procinfo.Mount{Target: "/run/secrets/other", Type: "tmpfs", Options: []string{"ro"}})},
		{"a shell", "B12", status("Name", "sh")},
		{"a shell's arguments", "B12", shown(func(p *Process) { p.Args = []string{"/bin/sh", "-c"} })},
		{"a cable", "B20", shown(func(p *Process) { p.Interfaces = []string{"eth0", "lo"} })},
		{"it comes back by itself", "B21", func(w *Worker) { w.Outside.Restart = "always" }},
		{"a low port", "B22", say("room.port 534", "ok")},
		{"a route", "B22", say("room.route", "ESRCH")},
		{"a name is resolved", "B23", say("dns.vtest.example.com", "198.51.100.1")},
		{"a name was looked up", "B23", undenied(func(d Denial) bool { return d.Kind == "dns" && d.Name == "vtest.example.com" })},
		{"a handshake", "B24", say("tls.https://vtest.example.com", "handshake")},
		{"TLS was let through", "B24 B34", undenied(func(d Denial) bool { return d.Kind == "tls" })},
		{"a port that a line names leads anywhere", "B25", undenied(func(d Denial) bool { return d.Port == 22 })},
		{"metadata", "B26", say("never.http://169.254.169.254", "200")},
		{"the listener of this machine", "B26", func(w *Worker) { w.Net.Canary.Others = 1 }},
		{"a timeout", "B28 B26", say("never.169.254.169.254:9000", "TIMEOUT")},
		{"the kernel's refusals aren't counted", "B28", func(w *Worker) { w.Net.RefusedAfter = 0 }},
		{"a request that the line lacks", "B34", say("endpoint.api", "200")},
		{"a request that the line lacks, which the host refused", "B34", undenied(func(d Denial) bool { return d.Kind == "endpoint" })},
		{"the host's answer, and none of the endpoint", "B34", say("endpoint.api", "403")},
		{"another Host", "B34", say("endpoint-host.api", "200")},
		{"around the endpoint", "B34", say("around.api", "handshake")},
		{"the guard would dial it", "B31", func(w *Worker) { w.Net.Explained["169.254.169.254"] = Answer{Dialled: true, Reason: "metadata"} }},
		{"the door is writable", "B41", say("init.door", "ok")},
		{"workshop-init is readable", "B41", say("init.workshop-init", "ok")},
		{"a tool that isn't listed", "B41", func(w *Worker) { w.Toolbox.Unlisted[0].Answer = "it would run" }},
		{"a terminal", "B43", status("tty", "34816")},
		{"a key of a model", "B44 B45", say("environ", "ANTHROPIC_API_KEY,COLOUR,HOME")},
		{"a configured key of a model", "B44", func(w *Worker) { w.Outside.Env = append(w.Outside.Env, "OPENAI_API_KEY=x") }},
		{"a dummy in the place of a key", "", func(w *Worker) {
			w.Outside.Env = append(w.Outside.Env, "OPENAI_API_KEY="+firewall.DummyToken)
			say("environ", "COLOUR,HOME,OPENAI_API_KEY")(w)
		}},
		{"a variable of the caller", "B45", func(w *Worker) { w.Outside.Env = append(w.Outside.Env, "MY_TOKEN=0123456789") }},
		{"a /sys that is empty", "", shown(func(p *Process) {
			p.Mounts = slices.DeleteFunc(p.Mounts, func(m procinfo.Mount) bool { return strings.HasPrefix(m.Target, "/sys/") })
			*p.at("/sys") = procinfo.Mount{Target: "/sys", Type: "tmpfs", Root: "/x", Options: []string{"ro", "nosuid"}, Super: []string{"size=64k"}}
		})},
		{"queued signals", "B60", shown(func(p *Process) { p.Limits["Max pending signals"] = "96365" })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sound()
			tt.change(w)
			breaks(t, w, tt.promises)
		})
	}
}

// breaks expects that of a worker these promises are broken, and no others.
func breaks(t *testing.T, w *Worker, promises string) {
	t.Helper()
	for _, l := range Judge(w) {
		if want := slices.Contains(strings.Fields(promises), l.Promise); want != (l.Verdict == Broken) {
			t.Errorf("%s: %s (%s)", l.Promise, l.Verdict, l.Why)
		}
	}
}

// TestControls: a control that fails makes a line not tested, and so does what can't be
// seen.
func TestControls(t *testing.T) {
	fail := func(key string) func(*Worker) {
		return func(w *Worker) { w.Seen[key] = Result{Name: key, Seen: "TIMEOUT"} }
	}
	for _, tt := range []struct {
		name, promises string
		change         func(*Worker)
	}{
		{"no socket at all", "B1", fail("control.socket")},
		{"no system call", "B2", fail("control.getpid")},
		{"no file can be written", "B3 B41", fail("control.write")},
		{"the guard's name doesn't resolve", "B23 B24 B25 B26 B28", fail("control.dns")},
		{"loopback doesn't work", "B20", fail("control.loop")},
		{"no port can be had", "B22", fail("control.bind")},
		{"no listener is reached", "B26", func(w *Worker) { w.Net.Canary.Control = false }},
		{"the kept file isn't in the copy", "B9", func(w *Worker) { w.Seen["kept./copy"] = Result{Seen: "ENOENT"} }},
		{"its own secret isn't there", "B11", func(w *Worker) { w.Seen["secret.token"] = Result{Seen: "ENOENT"} }},
		{"the groups don't list it", "B5", func(w *Worker) { w.Outside.Process.Groups.Member = false }},
		{"the engine names another process", "B1 B2 B3 B4 B5 B6 B8 B11 B12 B20 B30 B41", func(w *Worker) { w.Outside.Process.Namespaces["pid"] = "pid:[3]" }},
		{"no processes are left", "B2", func(w *Worker) { w.Seen["call.user namespace"] = Result{Seen: "EAGAIN"} }},
		{"the guard has no events", "B23 B24 B25 B26 B28", func(w *Worker) { w.Net.NoEvents = "it doesn't answer" }},
		{"the room learns", "B23 B24 B25", func(w *Worker) { w.Net.Learns = true }},
		{"the room is open", "B24 B25", func(w *Worker) { w.Mode = firewall.Open }},
		{"limits were waived", "B5", func(w *Worker) { w.NotHeld = []string{"B5"} }},
		{"no session", "B41", func(w *Worker) { w.Toolbox = Toolbox{Why: "no answer"} }},
		{"the toolbox refuses all", "B41", func(w *Worker) { w.Toolbox.Control = "read_file (listed): " + NotOffered }},
		{"the facts are missing", "B7", func(w *Worker) { w.Refusal = nil }},
		{"not all was searched for sockets", "B7", func(w *Worker) { w.SocketsMissed = errors.New("permission denied") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := sound()
			tt.change(w)
			for _, l := range Judge(w) {
				want := slices.Contains(strings.Fields(tt.promises), l.Promise) || inPart(l.Promise)
				if l.Verdict == Broken || want != (l.Verdict == NotTested) {
					t.Errorf("%s: %s (%s)", l.Promise, l.Verdict, l.Why)
				}
			}
		})
	}
}

// TestNothingSeen: without a probe or a look from outside nothing that needs it is held.
func TestNothingSeen(t *testing.T) {
	w := sound()
	w.Unseen = "the probe was killed"
	w.Net.Denials, w.Net.RefusedAfter = nil, 0 // nothing was tried, perhaps
	w.Outside = &Outside{Why: "no answer"}
	for _, l := range Judge(w) {
		if l.Verdict == Broken || l.Verdict == Held && l.Promise != "B31" {
			t.Errorf("%s: %s (%s)", l.Promise, l.Verdict, l.Why)
		}
	}
	w = sound()
	w.Outside.Process, w.Outside.Hidden = nil, "the engine is elsewhere"
	for _, l := range Judge(w) {
		if l.Verdict == Broken {
			t.Errorf("engine elsewhere: %s: %s (%s)", l.Promise, l.Verdict, l.Why)
		}
	}
}

// TestChangedFile: what only the changed file says breaks nothing.
func TestChangedFile(t *testing.T) {
	w := sound()
	w.Changed = true
	w.Mounts = w.Mounts[1:]
	w.Memory /= 2
	w.Secrets = nil
	for _, id := range []string{"B3", "B5", "B11"} {
		if l := lineOf(t, w, id); l.Verdict != NotTested || !strings.Contains(l.Why, "changed since") {
			t.Errorf("%s: %s (%s)", id, l.Verdict, l.Why)
		}
	}
}

// TestWithoutNetwork: a worker with network none has no guard; its refusals come from
// its own kernel.
func TestWithoutNetwork(t *testing.T) {
	w := sound()
	w.Net, w.Mode = nil, firewall.None
	w.Seen = Seen{}
	for _, p := range Probes(w) {
		w.Seen[p.Key] = Result{Name: p.Key, Seen: answer(p)}
	}
	for _, l := range Judge(w) {
		want := Held
		if inPart(l.Promise) || l.Promise == "B31" {
			want = NotTested
		}
		if l.Verdict != want {
			t.Errorf("%s: %s (%s), want %s", l.Promise, l.Verdict, l.Why, want)
		}
	}
	w.Seen["none.198.51.100.1:443"] = Result{Seen: "open"}
	if l := lineOf(t, w, "B20"); l.Verdict != Broken {
		t.Errorf("a connection that opened: %s", l.Verdict)
	}
}

// TestHostileOutput: what a worker prints instead of results is an error, and what is in
// them is printable and short.
func TestHostileOutput(t *testing.T) {
	probes := []Probe{{"a", ""}, {"b", ""}}
	good := `{"name":"a","seen":"ok"}` + "\n" + `{"name":"b","seen":"ok"}` + "\n"
	for name, out := range map[string]string{
		"nothing": "", "one": `{"name":"a"}` + "\n", "more": good + `{"name":"c"}` + "\n", "another order": `{"name":"b"}` + "\n" + `{"name":"a"}` + "\n",
		"twice": `{"name":"a"}` + "\n" + `{"name":"a"}` + "\n", "no JSON": "hello\n", "a list": "[]\n[]\n",
	} {
		if seen, err := ParseSeen([]byte(out), probes); err == nil {
			t.Errorf("%s: %v", name, seen)
		}
	}
	if seen, err := ParseSeen([]byte(good), probes); err != nil || len(seen) != 2 {
		t.Errorf("%v, %v", seen, err)
	}
	w := sound()
	w.Seen["uid"] = Result{Seen: "0:0 \x1b[2J\u202e" + strings.Repeat("x", 5000)}
	l := lineOf(t, w, "B4")
	if strings.ContainsAny(l.Why+l.Inside, "\x1b\u202e") || len(l.Inside) > 1000 {
		t.Errorf("%q", l.Inside)
	}
}

// TestServices: rooms have two capabilities, the guard none, and both have limits.
func TestServices(t *testing.T) {
	verdicts := func(isRoom bool, change func(*Process)) string {
		o := soundOutside()
		change(o.Process)
		var out []string
		for _, l := range Services("service", isRoom, nil, o) {
			out = append(out, l.Promise+" "+string(l.Verdict))
		}
		return strings.Join(out, ", ")
	}
	asRoom := func(p *Process) {
		p.Status["CapEff"], p.Status["CapPrm"], p.Status["CapBnd"] = roomCapabilities, roomCapabilities, roomCapabilities
	}
	for i, tt := range []struct {
		room   bool
		change func(*Process)
		want   string
	}{
		{false, func(*Process) {}, "B1 held, B2 held, B5 held"},
		{true, asRoom, "B1 held, B2 held, B5 held"},
		{false, asRoom, "B1 broken, B2 held, B5 held"},
		{true, func(*Process) {}, "B1 broken, B2 held, B5 held"},
		{false, func(p *Process) { p.Status["Seccomp"] = "0" }, "B1 held, B2 broken, B5 held"},
		{false, func(p *Process) { p.Groups.Memory = 0 }, "B1 held, B2 held, B5 broken"},
	} {
		if got := verdicts(tt.room, tt.change); got != tt.want {
			t.Errorf("%d: %s, want %s", i, got, tt.want)
		}
	}
	if l := GuardRestarts(&Outside{Witness: engine.Witness{Restart: "no"}}); l.Verdict != Broken {
		t.Errorf("a guard that stays away: %s", l.Verdict)
	}
}

// TestPublished: B10: an address that the file doesn't have is a break.
func TestPublished(t *testing.T) {
	for i, tt := range []struct {
		published, declared, listening []string
		want                           Verdict
	}{
		{nil, nil, []string{"0.0.0.0:22"}, Held},
		{[]string{"127.0.0.1:8080"}, []string{"127.0.0.1:8080"}, []string{"127.0.0.1:8080"}, Held},
		{[]string{"0.0.0.0:8080"}, []string{"127.0.0.1:8080"}, nil, Broken},
		{[]string{"127.0.0.1:8080"}, []string{"127.0.0.1:8080"}, []string{"0.0.0.0:8080"}, Broken},
		{nil, []string{"127.0.0.1:8080"}, nil, NotTested},
		{[]string{"0.0.0.0:8080"}, []string{"0.0.0.0:8080"}, []string{"0.0.0.0:8080"}, Held},
	} {
		l := Published(&Outside{Witness: engine.Witness{Published: tt.published}}, tt.declared, tt.listening, false)
		if l.Verdict != tt.want {
			t.Errorf("%d: %s (%s), want %s", i, l.Verdict, l.Why, tt.want)
		}
	}
}

// TestSecretsFound: a value of a secret outside of its worker is a break.
func TestSecretsFound(t *testing.T) {
	for i, tt := range []struct {
		s    SecretValues
		want Verdict
	}{
		{SecretValues{}, NotTested},
		{SecretValues{Names: []string{"a"}, Looked: []string{"x"}}, Held},
		{SecretValues{Names: []string{"a"}}, NotTested},
		{SecretValues{Names: []string{"a"}, Looked: []string{"x"}, Found: []string{"x"}}, Broken},
	} {
		if l := Secrets(tt.s); l.Verdict != tt.want {
			t.Errorf("%d: %s, want %s", i, l.Verdict, tt.want)
		}
	}
}

// TestChooseTries: nothing is tried that the policy allows.
func TestChooseTries(t *testing.T) {
	all := func(lines ...string) (rules []firewall.Rule) {
		for _, l := range lines {
			rules = append(rules, firewall.Rule{Host: pattern(l), Ports: []firewall.PortRange{{First: 80, Last: 80}, {First: 443, Last: 443}}})
		}
		return rules
	}
	from := netip.MustParseAddrPort("127.1.2.3:61000")
	p := firewall.RoomPolicy{Mode: firewall.Restricted, Allow: all("**.example.com")}
	if got := ChooseTries(&p, "v1", 3, from); got.Name != "v1.example.net" || got.Port == 0 || got.Named != 0 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]bool{
		ChooseTries(&p, NewID()+"-worker1", 3, from).Name: true, ChooseTries(&p, NewID()+"-", 3, from).Special: true,
		"v1-worker.example.net": false, NewID() + "-worker.example.net.evil.example": false, NewID() + ".example.net": false,
	} {
		if IsTry(name) != want {
			t.Errorf("%s is a name of verify's: %v, want %v", name, !want, want)
		}
	}
	p.Allow = all("**.example.com", "**.example.net", "**.example.org")
	if got := ChooseTries(&p, "v1", 3, from); got.Name != "" {
		t.Errorf("a name that is allowed: %s", got.Name)
	}
	p = firewall.RoomPolicy{Mode: firewall.Open}
	if got := ChooseTries(&p, "v1", 3, from); got.Name != "" || got.Port != 0 {
		t.Errorf("mode open: %+v", got)
	}
	p = firewall.RoomPolicy{Mode: firewall.Restricted, Allow: []firewall.Rule{{CIDR: netip.MustParsePrefix("198.51.100.0/24"), Ports: []firewall.PortRange{firewall.AllPorts}}}}
	if got := ChooseTries(&p, "v1", 3, from); got.Port != 0 || got.Named != 0 {
		t.Errorf("an address that is allowed: %+v", got)
	}
	p = firewall.RoomPolicy{Mode: firewall.Restricted, Allow: append(all("a.example.org", "*.example.net"), all("b.example.org", "c.example.org", "d.example.org")...)}
	if got := LiveHosts(&p); fmt.Sprint(got) != "[a.example.org:443 b.example.org:443 c.example.org:443]" {
		t.Errorf("live: %v", got)
	}
}

// TestGroup: lines that say the same of several workers are one; a break stays alone.
func TestGroup(t *testing.T) {
	var r Report
	r.Add(Line{Promise: "B2", Worker: "a", Verdict: Held}, Line{Promise: "B1", Worker: "a", Verdict: Held}, Line{Promise: "B1", Worker: "b", Verdict: Held},
		Line{Promise: "B1", Worker: "c", Verdict: Broken, Why: "x"}, Line{Promise: "B1", Worker: "d", Verdict: Broken, Why: "x"}, Line{Promise: "B1", Worker: "e", Verdict: NotTested, Why: "y"})
	r.Sort()
	var got []string
	for _, g := range Group(r.Lines) {
		got = append(got, fmt.Sprintf("%s %s %v", g.Promise, g.Verdict, g.Workers))
	}
	want := "B1 held [a b]|B1 broken [c]|B1 broken [d]|B1 not tested [e]|B2 held [a]"
	if strings.Join(got, "|") != want || r.Held != 3 || r.Broken != 2 || r.NotTested != 1 {
		t.Errorf("%v, %+v", got, r)
	}
}

// TestDisruptive: what was seen of a copy decides, and a control that fails makes it not
// tested.
func TestDisruptive(t *testing.T) {
	filled := func(change func(seen Seen, after *Process)) Verdict {
		seen := Seen{}
		for _, p := range FillProbes() {
			seen[p.Key] = Result{Seen: map[string]string{"fill.memory": "killed", "fill.processes": "EAGAIN", "fill.scratch": "ENOSPC"}[p.Key]}
			if strings.HasPrefix(p.Key, "control.") {
				seen[p.Key] = Result{Seen: "ok"}
			}
		}
		before, after := soundOutside(), soundOutside()
		after.Process.Groups = &cgroup.Enforced{Peak: CopyMemory, Killed: 1, Full: 1, Member: true}
		change(seen, after.Process)
		return Filled("worker", seen, "", before, after).Verdict
	}
	for _, tt := range []struct {
		name   string
		change func(Seen, *Process)
		want   Verdict
	}{
		{"sound", func(Seen, *Process) {}, Held},
		{"all memory can be had", func(s Seen, _ *Process) { s["fill.memory"] = Result{Seen: "ok"} }, Broken},
		{"more was used", func(_ Seen, p *Process) { p.Groups.Peak = 2 * CopyMemory }, Broken},
		{"nothing was killed", func(_ Seen, p *Process) { p.Groups.Killed = 0 }, Broken},
		{"nothing was refused", func(_ Seen, p *Process) { p.Groups.Full = 0 }, Broken},
		{"another worker", func(_ Seen, p *Process) { p.Status["Pid"] = "301" }, Broken},
		{"the kernel doesn't count", func(_ Seen, p *Process) { p.Groups.Peak, p.Groups.Killed, p.Groups.Full = -1, -1, -1 }, Held},
		{"no memory at all", func(s Seen, _ *Process) { s["control.memory"] = Result{Seen: "killed"} }, NotTested},
		{"no answer", func(s Seen, _ *Process) { delete(s, "fill.scratch") }, NotTested},
	} {
		if got := filled(tt.change); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	crash := func() *Crash {
		return &Crash{
			Seen: Seen{"crash.a": {Seen: "ECONNREFUSED+TIMEOUT"}, "crash.b": {Seen: "NXDOMAIN"}}, Later: Seen{"control.dns": {Seen: "127.0.0.1"}},
			Canary: Canary{Address: "198.51.100.9:4000", Control: true}, Killed: []string{"guard", "room"}, Back: 1, Before: soundOutside(), After: soundOutside(), Closed: soundOutside(),
		}
	}
	for _, tt := range []struct {
		name   string
		change func(*Crash)
		want   string // B21, B29
	}{
		{"sound", func(*Crash) {}, "held, held"},
		{"a connection got out", func(c *Crash) { c.Seen["crash.a"] = Result{Seen: "ECONNREFUSED+data"} }, "broken, held"},
		{"a name was resolved", func(c *Crash) { c.Seen["crash.b"] = Result{Seen: "198.51.100.1+TIMEOUT"} }, "broken, held"},
		{"the listener was reached", func(c *Crash) { c.Canary.Others = 1 }, "broken, held"},
		{"an interface appeared", func(c *Crash) { c.Closed.Process.Interfaces = []string{"eth0", "lo"} }, "broken, held"},
		{"the room wasn't killed", func(c *Crash) { c.Killed = c.Killed[:1] }, "not tested, held"},
		{"the guard stays away", func(c *Crash) { c.Back = 0 }, "held, broken"},
		{"the worker was restarted", func(c *Crash) { c.After.Process.Status["Pid"] = "301" }, "held, broken"},
		{"the guard answers nothing", func(c *Crash) { c.Later = nil }, "held, not tested"},
		{"no probe ran", func(c *Crash) { c.Unseen = "it was killed" }, "not tested, held"},
	} {
		c := crash()
		tt.change(c)
		l := Crashed("worker", c)
		if got := string(l[0].Verdict + ", " + l[1].Verdict); got != tt.want {
			t.Errorf("%s: %s, want %s (%s, %s)", tt.name, got, tt.want, l[0].Why, l[1].Why)
		}
	}
	for i, tt := range []struct {
		control, seen string
		cut           int
		want          Verdict
	}{
		{"kept", "ECONNRESET", 1, Held}, {"kept", "EOF", 1, Held}, {"kept", "kept", 0, Broken}, {"kept", "EOF", 0, Broken},
		{"EOF", "EOF", 1, NotTested}, {"kept", "NXDOMAIN", 1, NotTested},
	} {
		l := Cut("worker", "host:443", Seen{"control.kept": {Seen: tt.control}}, Seen{"cut": {Seen: tt.seen}}, "", tt.cut)
		if l.Verdict != tt.want {
			t.Errorf("cut %d: %s (%s), want %s", i, l.Verdict, l.Why, tt.want)
		}
	}
	seen := Seen{"flood.names": {Seen: "NXDOMAIN"}}
	for i, tt := range []struct {
		seen    Seen
		same    bool
		panics  uint64
		seconds int
		want    Verdict
	}{
		{seen, true, 0, 1, Held}, {seen, false, 0, 1, Broken}, {seen, true, 1, 1, Broken}, {seen, true, 0, 0, Broken}, {nil, true, 0, 1, NotTested},
	} {
		if l := Flooded("worker", tt.seen, tt.same, tt.panics, time.Duration(tt.seconds), soundOutside()); l.Verdict != tt.want {
			t.Errorf("flood %d: %s (%s), want %s", i, l.Verdict, l.Why, tt.want)
		}
	}
	lines := With([]Line{notTested("B27", "", disruptiveHere), notTested("B29", "guard", disruptiveHere), {Promise: "B5", Verdict: Held}, {Promise: "B21", Verdict: Broken}},
		[]Line{{Promise: "B27", Verdict: Held}, {Promise: "B5", Verdict: Held}, {Promise: "B21", Verdict: Held}})
	if len(lines) != 6 {
		t.Errorf("%+v", lines)
	}
}
