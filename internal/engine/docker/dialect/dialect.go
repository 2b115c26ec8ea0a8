// Package dialect translates creations of containers from Docker's words into those of
// the other programs that answer Docker's API, or refuses them. It is pure: what must
// exist on the host comes back as data.
package dialect

import (
	"io/fs"

	"github.com/docker/docker/api/types/container"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// Creation is a container to create, as far as flavours differ.
type Creation struct {
	Service string
	Role    compose.Role
	User    string // UID:GID
	Host    *container.HostConfig
	// Names are those of the network namespace, which its owner has: the room, or a
	// worker without a network. Zero for the guard.
	Names Names
}

// Names is what /etc/hosts and /etc/resolv.conf say.
type Names struct {
	Hosts   []string // NAME:ADDRESS
	Servers []string
	Search  []string
	Options []string
}

// Facts are of the engine.
type Facts struct {
	Flavour engine.Flavour
	Local   bool // it sees this machine's files
	// DefaultRuntime is the OCI runtime that it runs.
	DefaultRuntime string
	CgroupVersion  string // "1" or "2"
	// CgroupV1 is the user's consent to cgroups of version 1, where a worker sees the
	// names of its own (B6).
	CgroupV1 bool
	Limits   engine.Limits
	Systemd  bool // it leaves the cgroups of containers to systemd
	Rootless bool
	IDs      int64 // how many ids a rootless engine maps
	// NetworkHelper is the program by which a rootless engine has a network; empty: none.
	NetworkHelper string
	// EndsAtLogout: what the caller's systemd runs ends with the last session.
	EndsAtLogout bool
	UID, GID     int // of the caller
	SELinux      bool
	// Processes and Files are the hard limits that the caller has (RLIMIT_NPROC,
	// RLIMIT_NOFILE); -1: none.
	Processes, Files int64
	// Dir is the directory of files that the engine reads by their path; absolute.
	Dir string
}

// File is a file that must exist on the host before the container is created, and at each
// start. Its name has the digest of its text.
type File struct {
	Path string
	Text string
	Mode fs.FileMode
}

// Translate returns the creation in the words of the engine, and the files that it names.
// The error is a [engine.RefusedError]. c is not changed.
func Translate(c Creation, f Facts) (*container.HostConfig, []File, error) {
	if f.Flavour == engine.FlavourPodman {
		return podman(c, f)
	}
	return c.Host, nil, nil
}

// Refuse returns why no project runs on the engine, a [engine.RefusedError]; nil: it isn't
// refused. What a promise depends on is in [Findings].
func Refuse(f Facts) error {
	if f.Flavour == engine.FlavourPodman {
		return podmanRefusal(f)
	}
	return nil
}

// NoCompose returns why plain Compose can't run the generated files, which are in Docker's
// words; empty: it can.
func NoCompose(f Facts) string {
	if f.Flavour == engine.FlavourPodman {
		return "the generated files are in Docker's words: podman would give a worker the machine's own names (B26) and writable directories without a size (B3)"
	}
	return ""
}

// Findings returns what a flavour needs of the machine for a promise.
func Findings(f Facts) []engine.Finding {
	if f.Flavour == engine.FlavourPodman {
		return podmanFindings(f)
	}
	return nil
}
