package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/llmdo/workshop/firewall"
)

// maxServers is what resolv.conf(5) takes.
const maxServers = 3

// resolvers returns the upstream servers: those of the policy, else those of
// resolv.conf, which is read once and never again. None at all is an error only
// where the file can't be read for another reason than not being there: a room
// that needs no name must start.
func resolvers(configured []string, file string) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	for _, s := range configured {
		a, err := firewall.ParseResolver(s)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	if len(out) > 0 {
		return out, nil
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("resolvers: %w", err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() && len(out) < maxServers {
		fields := strings.Fields(sc.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(fields[1]); err == nil {
			out = append(out, netip.AddrPortFrom(a.Unmap(), 53))
		}
	}
	return out, sc.Err()
}
