package hostfirewall

import (
	"fmt"
	"regexp"
	"sync"
)

// Tool is the program that loads the rules.
type Tool string

// The tools.
const (
	IPTables Tool = "iptables"
	NFTables Tool = "nftables"
	PF       Tool = "pf"
)

// Tools are all of them.
func Tools() []string { return []string{string(IPTables), string(NFTables), string(PF)} }

var (
	// interfaceName: IFNAMSIZ is 16 with its end.
	interfaceName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`) })
	cgroupPath    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(/[A-Za-z0-9_.@:-]+)+$`) })
)

// CanNameCgroup reports whether the path of a control group can be in a rule.
func CanNameCgroup(path string) bool { return cgroupPath().MatchString(path) }

// Export returns the text that a tool loads. Whoever loads it is root: names that could
// be more than a name are an error.
func Export(tool Tool, r *Rules) (string, error) {
	for _, b := range r.Bridges {
		if !interfaceName().MatchString(b.Interface) {
			return "", fmt.Errorf("%q is not the name of an interface", b.Interface)
		}
	}
	for _, p := range r.Programs {
		if p.Cgroup != "" && !CanNameCgroup(p.Cgroup) {
			return "", fmt.Errorf("a control group at %q can't be named in a rule", p.Cgroup)
		}
	}
	switch tool {
	case IPTables:
		return iptables(r), nil
	case NFTables:
		return nftables(r), nil
	case PF:
		return pf(r), nil
	}
	return "", fmt.Errorf("no rules for %q", tool)
}

// Remove returns the text that removes a user's rules, whatever they are.
func Remove(tool Tool, uid int) string {
	switch tool {
	case IPTables:
		return removeIPTables(uid)
	case NFTables:
		return removeNFTables(uid)
	}
	return removePF()
}
