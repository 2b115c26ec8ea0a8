//go:build linux

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/e2e/scenario"
	"github.com/llmdo/workshop/internal/dev/testnet"
)

// asGuard runs a program where a guard that fell would run one: with its network and its
// user.
func asGuard(s *scenario.Scenario, script string) error {
	uid := strconv.Itoa(s.GuardUID())
	cmd := exec.Command("nsenter", "--target", strconv.Itoa(s.Pid("guard")), "--net", "--", "setpriv", "--reuid", uid, "--clear-groups", "timeout", "2", "bash", "-c", script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

var counters = regexp.MustCompile(`(?m)^#.*\n|\[\d+:\d+\]`)

// hostRules are the rules of the machine, without times and counts.
func hostRules(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-ec", "iptables-save; ip6tables-save; nft list tables").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return counters.ReplaceAllString(string(out), "")
}

func TestHostFirewall(t *testing.T) {
	scenario.NotRootless(t, "the guard has the caller's user there: TestHostFirewall_WithoutRoot")
	if scenario.DockerAPI() { // rules are of all workshops of an engine
		if !scenario.Alone(t) {
			return
		}
		scenario.NewEngine(t)
	}
	s := scenario.New(t, "restricted", "rules of the host hold what a guard that fell may reach, the workshop works through them unchanged, and they are removed without a trace")
	s.Env = append(s.Env, "XDG_STATE_HOME="+s.TempDir())
	export := func(args ...string) []string {
		if !scenario.DockerAPI() {
			args = append(args, "--engine", "namespace")
		}
		return append([]string{"firewall", "export"}, args...)
	}
	port := freePort(t)
	edit(s, "        - ssh.example.org:22\n", "        - ssh.example.org:22\n        - {cidr: 198.18.0.0/15, port: 9000}\n        - {host: db.example.org, port: 5432, private: true}\n        - {host: gone.example.org, port: 5432, private: true}\n")
	edit(s, "    mounts:\n", "    ports: [\""+port+":8080\"]\n    mounts:\n")
	if d := s.Expect(1, export("--for", "iptables")...); d.Out != "" || !strings.Contains(d.Err, "no workshop with a network is up") {
		t.Errorf("nothing is up: %s%s", d.Out, d.Err)
	}
	s.Internet.Answer("db.example.org", testnet.A("10.77.0.5"))
	s.Cleanup(func() { s.Internet.Answer("db.example.org", testnet.NXDomain) })
	s.Up()
	defer s.Serve("worker", "127.0.0.1:8080", "from-the-worker")()
	host, _ := scenario.Listen(t, s.HostAddress())
	hostName, hostPort, _ := net.SplitHostPort(host)
	works := func(when string) {
		t.Helper()
		for _, r := range s.Sees("worker", "http https://allowed.example.org/ ca=/ca.pem -> 200", "connect 198.18.0.2:9000 -> open", "dns 127.0.0.1 ssh.example.org A -> 198.51.100.22") {
			if !r.OK {
				t.Errorf("%s: %+v", when, r)
			}
		}
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		r, err := client.Get("http://127.0.0.1:" + port + "/")
		if err != nil {
			t.Errorf("%s: the published port: %v", when, err)
			return
		}
		r.Body.Close()
	}
	fallen := []struct {
		name, host, port string
		open             bool
	}{
		{"public", "198.51.100.11", "443", true},
		{"a range of a line", "198.18.0.2", "9000", true},
		{"another port of it", "198.18.0.2", "2222", false},
		{"the host", hostName, hostPort, false},
	}
	works("without rules")
	for _, x := range fallen {
		if err := asGuard(s, "exec 3<>/dev/tcp/"+x.host+"/"+x.port); err != nil {
			t.Errorf("without rules, %s: %v", x.name, err)
		}
	}
	// iptables makes its tables when it is first used, and keeps them.
	if out, err := exec.Command("sh", "-ec", "for t in iptables ip6tables; do for chain in INPUT FORWARD OUTPUT; do $t -A $chain -p udp --dport 9 -j DROP; done; done").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		_ = exec.Command("sh", "-c", "for t in iptables ip6tables; do for chain in INPUT FORWARD OUTPUT; do $t -D $chain -p udp --dport 9 -j DROP; done; done").Run()
	})
	d := s.Expect(0, export("--for", "iptables")...)
	says(s, d, "-d 10.77.0.5/32 -p tcp --dport 5432 -m comment --comment \"project "+s.Project+", workshop.yaml:12: db.example.org\" -j RETURN", "not held: ", "workshop.yaml:13: gone.example.org has no address now")
	before := hostRules(t)
	apply := func(tool string, args ...string) {
		t.Helper()
		d := s.Expect(0, export(append(args, "--for", tool)...)...)
		cmd := exec.Command("sh", "-ec", map[string]string{"iptables": "sh", "nftables": "nft -f -"}[tool])
		cmd.Stdin = strings.NewReader(d.Out)
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %v: %s\n%s", tool, err, out, d.Out)
		}
	}
	t.Cleanup(func() { // what a failure leaves
		for tool, load := range map[string]string{"iptables": "sh", "nftables": "nft -f -"} {
			cmd := exec.Command("sh", "-c", s.Lab.Workshop()+" firewall export --remove --for "+tool+" | "+load)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})
	holds := func(when string) {
		t.Helper()
		for _, x := range fallen {
			if err := asGuard(s, "exec 3<>/dev/tcp/"+x.host+"/"+x.port); (err == nil) != x.open {
				t.Errorf("%s, %s: open %v, want %v: %v", when, x.name, err == nil, x.open, err)
			}
		}
	}
	for _, tool := range []string{"nftables", "iptables"} {
		apply(tool)
		once := hostRules(t)
		if apply(tool); hostRules(t) != once {
			t.Errorf("%s: applied twice:\n%s\nonce:\n%s", tool, hostRules(t), once)
		}
		works(tool)
		holds(tool)
		if tool == "iptables" {
			s.FlushRules("room")
			s.Probe("worker", "connect 198.51.100.11:443 -> open")
			holds("the room's rules flushed")
		}
		if apply(tool, "--remove"); hostRules(t) != before {
			t.Errorf("%s: removed:\n%s\nbefore:\n%s", tool, hostRules(t), before)
		}
	}
	edit(s, "port: 9000", "port: 9001")
	if d := s.Expect(4, export("--for", "nftables")...); d.Out != "" || !strings.Contains(d.Err, "its guard has other lines than ") {
		t.Errorf("an edited file: %s%s", d.Out, d.Err)
	}
}

func TestHostFirewall_WithoutRoot(t *testing.T) {
	scenario.OnlyRootless(t, "with root the guard has a user of its own: TestHostFirewall")
	s := scenario.New(t, "restricted", "without root the rules have the guard's control group, or say that they can't tell the guard; published ports are held in any case")
	s.Env = append(s.Env, "XDG_STATE_HOME="+s.TempDir())
	port := freePort(t)
	edit(s, "    mounts:\n", "    ports: [\""+port+":8080\"]\n    mounts:\n")
	s.Up()
	d := s.Expect(0, "--engine", "namespace", "firewall", "export", "--for", "iptables")
	byGroup := strings.Contains(d.Out, "-m cgroup --path ")
	if byGroup == strings.Contains(d.Err, "not held: what the guard of project "+s.Project+" connects to: it has your user") {
		t.Errorf("by its group %v:\n%s%s", byGroup, d.Err, d.Out)
	}
	says(s, d, "! -i lo -p tcp --dport "+port, "WORKSHOP-"+strconv.Itoa(scenario.UID)+"-INPUT")
	if strings.Contains(d.Out, "--uid-owner") {
		t.Errorf("rules about the user's own programs:\n%s", d.Out)
	}
	edit(s, "    ports: [\""+port+":8080\"]\n", "")
	s.Up()
	if !byGroup {
		if d := s.Expect(4, "--engine", "namespace", "firewall", "export", "--for", "nftables"); d.Out != "" || !strings.Contains(d.Err, "nothing can be held here: ") {
			t.Errorf("nothing held: %s%s", d.Out, d.Err)
		}
	}
}
