package engine

import (
	"strings"
	"testing"

	"github.com/llmdo/workshop/compose"
)

func TestGVisorFlags(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--host-uds=open --network=sandbox", ""},
		{"-host-uds=open", ""},
		{"--host-uds=open --network=sandbox --platform=kvm --directfs=false --oci-seccomp --systemd-cgroup=true", ""},
		{"", "no --host-uds=open"},
		{"--network=sandbox", "no --host-uds=open"},
		{"--host-uds=all --network=host", "--host-uds=all, --network=host"},
		{"--host-uds=open --host-uds=create", "--host-uds=create"},
		{"--host-uds=open --ignore-cgroups", "--ignore-cgroups"},
		{"--host-uds=open --allow-flag-override=true --net-raw", "--allow-flag-override=true, --net-raw"},
		{"--host-uds=open --overlay2=all:memory --file-access-mounts=exclusive", "--overlay2=all:memory, --file-access-mounts=exclusive"},
		{"--host-uds=open --TESTONLY-unsafe-nonroot --profile", "--TESTONLY-unsafe-nonroot, --profile"},
		{"--host-uds open", "--host-uds, open"},
		{"--host-uds=open network=sandbox", "network=sandbox"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			if got := strings.Join(badGVisorFlags(strings.Fields(tt.args)), ", "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestGVisor: which engine gives a worker a kernel of gVisor's, and what is said elsewhere.
func TestGVisor(t *testing.T) {
	registered := Info{Local: true, Flavour: FlavourDocker, Runtimes: []string{"runc", "workshop-runsc"}, Daemon: Daemon{GVisorFlags: []string{"--host-uds=open", "--network=sandbox"}}}
	for _, tt := range []struct {
		name   string
		change func(*Info)
		says   string // empty: it does
	}{
		{"registered", func(*Info) {}, ""},
		{"podman", func(i *Info) { i.Flavour = FlavourPodman }, "use Docker: `--engine docker`"},
		{"another engine", func(i *Info) { i.Flavour = "" }, "use Docker: `--engine docker`"},
		{"elsewhere", func(i *Info) { i.Local = false }, "not on this machine, and what gVisor does there can't be seen: use an engine of this machine"},
		{"without root", func(i *Info) { i.Daemon.Rootless = true }, "a Docker that runs as root"},
		{"not registered", func(i *Info) { i.Runtimes = []string{"runc", "runsc"} }, "install gVisor's runsc, write `\"runtimes\": {\"workshop-runsc\""},
		{"registered openly", func(i *Info) { i.Daemon.GVisorFlags = []string{"--host-uds=open", "--network=host"} }, "flags that may open it (--network=host): write `\"runtimes\""},
		{"registered without flags", func(i *Info) { i.Daemon.GVisorFlags = nil }, "(no --host-uds=open)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := registered
			tt.change(&i)
			f := i.gvisor()
			if (f.Runtime == "workshop-runsc") != (tt.says == "") || (f.Mechanism == compose.MechanismGVisor) != (tt.says == "") || f.Runtime == "" && !strings.Contains(f.Why+": "+f.Do, tt.says) {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestSeenGVisorFlags: the flags of gVisor's process are those before its command, and are nobody
// else's.
func TestSeenGVisorFlags(t *testing.T) {
	for _, tt := range []struct{ name, args, want string }{
		{"gVisor", "runsc-sandbox --root=/run/x --host-uds=open boot --bundle=/b --cpu-num 2 c1", "--root=/run/x --host-uds=open"},
		{"no flags", "runsc-sandbox boot --bundle=/b c1", "no flags"},
		{"another container", "runsc-sandbox --host-uds=open boot --bundle=/b c2", "not seen"},
		{"its file server", "runsc-gofer --host-uds=open gofer --bundle=/b c1", "not seen"},
		{"another program", "sh -c boot c1", "not seen"},
		{"another command", "runsc-sandbox --host-uds=open wait c1", "not seen"},
		{"nothing", "", "not seen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			flags := GVisorFlags(strings.Split(tt.args, " "), "c1")
			got := strings.Join(flags, " ")
			switch {
			case flags == nil:
				got = "not seen"
			case len(flags) == 0:
				got = "no flags"
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
