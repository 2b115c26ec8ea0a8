package workshop

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
)

// openable reports hosts of allow that can't be reached whatever the line says
// (B26), with what to write instead; false refuses the line. Names whose meaning
// is a convention are warnings: the user's resolver may know another host by them.
func (d *decoder) openable(p firewall.HostPattern, ports []firewall.PortRange, private bool, at diag.Range) bool {
	switch machine := p.Machine(); {
	case p.Unopenable() && machine == firewall.LoopbackName:
		d.failDetail(at, "never-open", fmt.Sprintf("%s opens nothing: in a worker it is the worker's own loopback", p),
			"A server in the worker is reached without a line.", "remove the line; for a service on this machine "+hostLine(ports))
		return false
	case p.Unopenable():
		d.fail(at, "never-open", fmt.Sprintf("%s: %s", p, p.WhyUnopenable()), "remove the line")
		return false
	case machine == firewall.LoopbackName:
		d.closedHost(at, fmt.Sprintf("%s can't be reached: it is a name for loopback addresses, which stay closed (B26)", p),
			"A server in the worker is reached without a line.", "remove the line; for a service on this machine "+hostLine(ports))
	case machine == firewall.MetadataName:
		d.closedHost(at, fmt.Sprintf("%s can't be reached: it is the cloud's metadata service, which stays closed (B26)", p),
			"It hands out the machine's credentials.", hintMetadata)
	case machine == firewall.EngineHost:
		d.closedHost(at, fmt.Sprintf("%s can't be reached: it names the machine that runs the workers, which is closed by name (B26)", p),
			"", hostLine(ports))
	case !private && !p.IsWildcard() && !strings.Contains(p.String(), "."):
		d.singleLabel(at, p, ports)
	}
	return true
}

// singleLabel warns of a name that only a resolver of the local network can know; what
// that answers is private as a rule, so a line with private: true is meant.
func (d *decoder) singleLabel(at diag.Range, p firewall.HostPattern, ports []firewall.PortRange) {
	port, own := "PORT", ""
	if len(ports) == 1 {
		port = portsText(ports)
		own = ", port: " + port
	}
	d.add(diag.Diagnostic{
		Severity: diag.Warning, Code: "single-label", Range: at,
		Summary: fmt.Sprintf("%s is a single label, which only a resolver of the local network can know", p),
		Detail:  "Compose services and other workers aren't reached by name; workers of one room share 127.0.0.1.",
		Hint:    fmt.Sprintf("write its address, {cidr: ADDRESS/32, port: %s}, or {host: %s%s, private: true} for a host of the local network", port, p, own),
	})
}

func (d *decoder) closedHost(at diag.Range, summary, detail, hint string) {
	d.add(diag.Diagnostic{Severity: diag.Warning, Code: "closed-host", Range: at, Summary: summary, Detail: detail, Hint: hint})
}

const hintMetadata = "remove the line and pass the credentials: secrets: [{name: NAME, env: VARIABLE}]"

// hostLine is the line that opens a service of the host.
func hostLine(ports []firewall.PortRange) string {
	port := "PORT"
	if len(ports) == 1 {
		port = portsText(ports)
	}
	return fmt.Sprintf("write its address: {cidr: ADDRESS/32, port: %s} (Docker engine only)", port)
}

// addressHint is what to write for an address in place of a name, where a more
// exact hint than the general one is known.
func addressHint(host, general string, ports []firewall.PortRange) string {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil || a.Zone() != "" {
		return general
	}
	switch class := firewall.Classify(a); {
	case class == firewall.Loopback, class == firewall.Metadata:
		return closedClassHint(class)
	case class.Openable() && len(ports) == 1 && ports[0] != firewall.AllPorts:
		return fmt.Sprintf("write {cidr: %q, port: %s}", netip.PrefixFrom(a, a.BitLen()), portsText(ports))
	}
	return general
}

// closedClassHint is what to do about addresses of a class that no rule opens.
func closedClassHint(class firewall.Class) string {
	switch class {
	case firewall.Loopback:
		return "remove the line: a worker reaches its own servers without one"
	case firewall.Metadata:
		return hintMetadata
	}
	return "remove the line"
}
