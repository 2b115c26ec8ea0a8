//go:build linux

package scenario

import (
	"os/exec"
	"strconv"
	"strings"
)

// InRoom runs a program of this machine in the network namespace of a
// service, as root: what nobody inside can do.
func (s *Scenario) InRoom(service string, argv ...string) string {
	s.Helper()
	args := append([]string{"--target", strconv.Itoa(s.Pid(service)), "--net", "--"}, argv...)
	out, err := exec.Command("nsenter", args...).CombinedOutput()
	if err != nil {
		s.Fatalf("in the room of %s: %s: %v\n%s", service, strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// FlushRules removes every rule of both families and lets everything through:
// what an attacker with all rights over netfilter would do.
func (s *Scenario) FlushRules(service string) {
	s.Helper()
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, table := range []string{"nat", "filter"} {
			s.InRoom(service, family, "-t", table, "-F")
			s.InRoom(service, family, "-t", table, "-X")
		}
		for _, chain := range []string{"INPUT", "OUTPUT", "FORWARD"} {
			s.InRoom(service, family, "-P", chain, "ACCEPT")
		}
	}
}
