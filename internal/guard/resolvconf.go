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

// maxServers is MAXNS of resolv.conf(5).
const maxServers = 3

// resolvers returns the upstream servers: those of the policy, else those of
// resolv.conf. Having none is not an error, as a room that needs no names must
// start; a file that exists and can't be read is.
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

// resolvLook is the least interval between checks of resolv.conf; questions
// trigger them.
const resolvLook = time.Second

// resolvFile holds the servers of a resolv.conf, and reads it again when it has
// changed: the machine may be on another network. An unreadable file has none.
type resolvFile struct {
	name    string
	changed func(before, now []netip.AddrPort)
	now     func() time.Time

	mu      sync.Mutex
	servers []netip.AddrPort
	state   fileState
	looked  time.Time
}

// fileState identifies a version of a file.
type fileState struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64
}

// stateOf returns the zero value for a file that doesn't exist.
func stateOf(name string) (f fileState) {
	var st unix.Stat_t
	if unix.Stat(name, &st) == nil {
		f = fileState{uint64(st.Dev), st.Ino, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
	}
	return f
}

// openResolvFile reads a resolv.conf for the first time.
func openResolvFile(name string) (r *resolvFile, err error) {
	r = &resolvFile{name: name, now: time.Now, changed: func(_, _ []netip.AddrPort) {}}
	// Before the read: a concurrent change is seen by the next check.
	r.state, r.looked = stateOf(name), r.now()
	r.servers, err = resolvers(nil, name)
	return r, err
}

// current returns the servers; callers must not modify the slice.
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
		servers, r.state = nil, fileState{} // read again at the next check
	}
	if !slices.Equal(servers, r.servers) {
		r.changed(r.servers, servers)
		r.servers = servers
	}
	return servers
}
