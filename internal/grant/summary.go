package grant

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/workshop"
)

// maxHosts of a worker are named in short; the rest is counted.
const maxHosts = 3

// MountsText is "./src at /workspace/src ro, ./out at /out rw".
func MountsText(mounts []workshop.Mount, f Form) string {
	if len(mounts) == 0 {
		return "no files"
	}
	parts := make([]string, len(mounts))
	for i := range mounts {
		parts[i] = mountPlaces(&mounts[i], f)
	}
	return strings.Join(parts, ", ")
}

// NetworkText is "network restricted to a, b and 3 more", and through what the guard gets
// there where the file says it.
func NetworkText(n *workshop.Network, f Form) string {
	text := reachText(n, f)
	if n.Mode.V == firewall.None {
		return text
	}
	if proxy := proxyText(n, f); proxy != "" {
		text += " through the proxy " + proxy
	}
	if len(n.DNS) > 0 {
		text += ", names by " + firstOf(resolvers(n, f))
	}
	return text
}

func reachText(n *workshop.Network, f Form) string {
	switch n.Mode.V {
	case firewall.None:
		return "no network"
	case firewall.Open:
		return "network open (any public name, TCP)"
	}
	var hosts []string
	for _, r := range n.Allow {
		host := "preset " + r.Preset
		if r.Preset == "" {
			host = targetText(r, f)
			if ports := firewall.FormatPorts(r.Ports); ports != firewall.FormatPorts(firewall.DefaultAllowPorts()) {
				host += ":" + ports
			}
		}
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return "network restricted to nothing"
	}
	return "network restricted to " + firstOf(hosts)
}

// firstOf is "a, b, c and 2 more".
func firstOf(list []string) string {
	if more := len(list) - maxHosts; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:maxHosts], ", "), more)
	}
	return strings.Join(list, ", ")
}

// SecretsText is "secrets a, b".
func SecretsText(secrets []workshop.Secret) string {
	names := make([]string, len(secrets))
	for i, s := range secrets {
		names[i] = s.Name
	}
	return "secrets " + strings.Join(names, ", ")
}

// CachesText is "caches a, b".
func CachesText(caches []workshop.Cache) string {
	texts := make([]string, len(caches))
	for i := range caches {
		texts[i] = cacheText(&caches[i])
	}
	return "caches " + strings.Join(texts, ", ")
}

// LimitsText is "2G memory, 1 cpu, 256 pids".
func LimitsText(r *workshop.Resources) string {
	return fmt.Sprintf("%s memory, %s cpu, %d pids", r.Memory.V, strconv.FormatFloat(r.CPU.V, 'g', -1, 64), r.PIDs.V)
}
