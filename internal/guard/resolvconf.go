package guard

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/firewall"
)

// maxServers is what resolv.conf(5) takes.
const maxServers = 3

// resolvers returns the upstream servers: those of the policy, else those of
// resolv.conf. None at all is an error only where the file can't be read for
// another reason than not being there: a room that needs no name must start.
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

// resolvLook is how often resolv.conf is looked at, if questions come.
const resolvLook = time.Second

// resolvFile are the servers of a resolv.conf, which is read again when it has
// changed: the machine may be on another network. What can't be read names none.
type resolvFile struct {
	name    string
	changed func(before, now []netip.AddrPort)
	now     func() time.Time

	mu      sync.Mutex
	servers []netip.AddrPort
	state   fileState
	looked  time.Time
}

// fileState tells versions of a file apart.
type fileState struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64
}

// stateOf is the zero value for a file that isn't there.
func stateOf(name string) (f fileState) {
	var st unix.Stat_t
	if unix.Stat(name, &st) == nil {
		f = fileState{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
	}
	return f
}

// openResolvFile reads it for the first time.
func openResolvFile(name string) (r *resolvFile, err error) {
	r = &resolvFile{name: name, now: time.Now, changed: func(_, _ []netip.AddrPort) {}}
	// Before it is read: what changes meanwhile is seen with the next look.
	r.state, r.looked = stateOf(name), r.now()
	r.servers, err = resolvers(nil, name)
	return r, err
}

// current returns the servers; nobody may change what it returns.
func (r *resolvFile) current() []netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if since := now.Sub(r.looked); since >= 0 && since < resolvLook {
		return r.servers
	}
	r.looked = now
	state := stateOf(r.name)
	if state == r.state {
		return r.servers
	}
	r.state = state
	servers, err := resolvers(nil, r.name)
	if err != nil {
		servers, r.state = nil, fileState{} // and again with the next look
	}
	if !slices.Equal(servers, r.servers) {
		r.changed(r.servers, servers)
		r.servers = servers
	}
	return servers
}
