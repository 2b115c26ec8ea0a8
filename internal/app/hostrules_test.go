//go:build linux

package app

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/hostfirewall"
)

func hostGuardOf(t *testing.T, resolvConf string, resolvers ...string) *hostGuard {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte(resolvConf), 0o600); err != nil {
		t.Fatal(err)
	}
	g := &hostGuard{hostRules: &hostRules{Env: &Env{ResolvConf: file}}, v: &PolicyView{State: &control.State{}, engine: &Running{ProjectRef: ProjectRef{Name: "shop"}}}}
	for _, r := range resolvers {
		g.o.Resolvers = append(g.o.Resolvers, netip.MustParseAddr(r))
	}
	return g
}

func TestHostRulesResolvers(t *testing.T) {
	for _, c := range []struct {
		name      string
		conf      string
		upstreams []control.Upstream
		flag      []string
		bridged   bool
		want      []string
	}{
		{"the file's", "nameserver 198.51.100.1\n", []control.Upstream{{Kind: "resolver", Address: "198.51.100.53:5353"}}, nil, true, []string{"198.51.100.53/32 5353 true"}},
		{"a proxy beside them", "nameserver 198.51.100.1\n", []control.Upstream{{Kind: "proxy", Address: "10.0.0.9:3128"}}, nil, true, []string{"10.0.0.9/32 3128 false", "198.51.100.1/32 53 true"}},
		{"the machine's", "nameserver 127.0.0.53\nnameserver 2001:db8::53\n", nil, nil, false, []string{"127.0.0.53/32 53 true", "2001:db8::53/128 53 true"}},
		{"of them those that a container reaches", "nameserver 127.0.0.53\nnameserver 198.51.100.1\n", nil, nil, true, []string{"198.51.100.1/32 53 true"}},
		{"named", "nameserver 198.51.100.1\n", nil, []string{"10.0.0.53"}, true, []string{"10.0.0.53/32 53 true"}},
		{"named, for containers alone", "nameserver 198.51.100.1\n", nil, []string{"10.0.0.53"}, false, []string{"198.51.100.1/32 53 true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := hostGuardOf(t, c.conf, c.flag...)
			g.v.State.Upstreams = c.upstreams
			all, err := g.upstreams(context.Background(), c.bridged)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range all {
				udp := " false"
				if o.UDP {
					udp = " true"
				}
				got = append(got, o.To.String()+" "+firewall.FormatPorts(o.Ports)+udp)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Guards that the kernel can't tell apart have the lines of all, each once.
func TestHostRulesTogether(t *testing.T) {
	open := func(to string, port uint16, udp bool) hostfirewall.Opening {
		return opensAddress(netip.MustParseAddr(to), port, udp, "line")
	}
	h := &hostRules{}
	h.together(hostfirewall.Programs{Projects: []string{"a"}, UID: 65532, Lines: []hostfirewall.Opening{open("10.0.0.1", 1, false)}, Upstreams: []hostfirewall.Opening{open("10.0.0.53", 53, true)}})
	h.together(hostfirewall.Programs{Projects: []string{"b"}, UID: 65532, Lines: []hostfirewall.Opening{open("10.0.0.1", 1, false), open("10.0.0.1", 2, false)}, Upstreams: []hostfirewall.Opening{open("10.0.0.53", 53, false)}})
	h.together(hostfirewall.Programs{Projects: []string{"c"}, Cgroup: "/c/workshop"})
	want := []hostfirewall.Programs{
		{Projects: []string{"a", "b"}, UID: 65532, Lines: []hostfirewall.Opening{open("10.0.0.1", 1, false), open("10.0.0.1", 2, false)}, Upstreams: []hostfirewall.Opening{open("10.0.0.53", 53, true)}},
		{Projects: []string{"c"}, Cgroup: "/c/workshop"},
	}
	if diff := cmp.Diff(want, h.out.Programs, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
}

// A process of the caller's in no group of its own is refused; one of another user isn't.
func TestHostRulesIdentify(t *testing.T) {
	var p hostfirewall.Programs
	if err := identify(os.Getpid(), &p); err == nil {
		t.Errorf("this process: %+v", p)
	}
	if err := identify(0, &p); err == nil {
		t.Errorf("no process: %+v", p)
	}
	if os.Getuid() != 0 {
		t.Skip("skipped: a process of another user needs root")
	}
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if err := identify(cmd.Process.Pid, &p); err != nil || p.UID != 65532 || p.Cgroup != "" {
		t.Errorf("%v: %+v", err, p)
	}
}

// A process of the caller's that is in a group of the namespace engine is known by the
// directory of those groups, which a restart doesn't replace.
func TestHostRulesGroup(t *testing.T) {
	base := ""
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		if _, err := os.Stat(dir + "/cgroup.controllers"); err == nil {
			base = dir
		}
	}
	if base == "" || os.Getuid() != 0 {
		t.Skip("skipped: no control groups of version 2, or no root")
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	defer ended()
	name := "workshop-hostrules-test-" + strconv.Itoa(cmd.Process.Pid)
	for _, below := range []string{"", "/workshop", "/workshop/1-guard"} {
		dir := base + "/" + name + below
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		defer func() {
			ended() // else it is busy
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		}()
		if err := os.WriteFile(dir+"/cgroup.procs", []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
		var p hostfirewall.Programs
		err := identify(cmd.Process.Pid, &p)
		if below != "/workshop/1-guard" {
			if err == nil {
				t.Errorf("in %s: %+v", dir, p)
			}
			continue
		}
		if err != nil || p.UID != 0 || p.Cgroup != "/"+name+"/workshop" {
			t.Errorf("in %s: %v: %+v", dir, err, p)
		}
	}
}
