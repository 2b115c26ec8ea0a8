// Package spec says completely what a container of the namespace engine is. The
// engine makes it from a service of the project, the supervisor keeps it, and
// package container carries it out. What is not in it does not happen.
//
// It is pure data, as JSON between the programs; an unknown key is an error.
package spec

import "time"

// Version of the form. Programs of different versions refuse each other.
const Version = 1

// Container is one service of a project, ready to be started.
type Container struct {
	Version int    `json:"version"`
	Name    string `json:"name"`    // as Compose forms it: project-service-1
	Service string `json:"service"` // unique in a project
	Role    Role   `json:"role"`
	// Labels as a Docker container would have them: project, directory, hash.
	Labels  map[string]string `json:"labels,omitempty"`
	Image   string            `json:"image"`              // reference, for display
	ImageID string            `json:"image_id,omitempty"` // digest of its configuration

	Process Process `json:"process"`
	Root    Root    `json:"root"`
	// Mounts in the order in which they are made; a later one may lie in an
	// earlier one.
	Mounts []Mount `json:"mounts,omitempty"`
	// Files are small read-only files of the container's own, such as
	// /etc/hosts, put over what the root has there.
	Files    []File `json:"files,omitempty"`
	Hostname string `json:"hostname"`

	Network Network `json:"network"`
	// Sysctls of the network namespace, which only a container with a new one
	// may have: "net.ipv4.ip_unprivileged_port_start" and the like.
	Sysctls map[string]string `json:"sysctls,omitempty"`

	Limits  Limits   `json:"limits"`
	Rlimits []Rlimit `json:"rlimits,omitempty"`
	// Capabilities that are kept, by name ("CAP_NET_ADMIN"); empty: none. They
	// are in all sets of the process, the bounding set has no other.
	Capabilities []string `json:"capabilities,omitempty"`
	// Seccomp is the filter: an array of struct sock_filter
	// (linux/filter.h) in the machine's byte order. Empty is an error.
	Seccomp []byte `json:"seccomp"`
	// Landlock puts a second fence around the file system where the kernel has
	// it: nothing can be written but what Mounts make writable.
	Landlock bool `json:"landlock,omitempty"`
	OOMScore int  `json:"oom_score_adj,omitempty"`

	Restart Restart  `json:"restart,omitempty"`
	Grace   Duration `json:"grace"` // between the stop signal and SIGKILL
	Log     Log      `json:"log"`
	// Ports are listened on by the supervisor and given to the guard.
	Ports []Port `json:"ports,omitempty"`
}

// Role is what a container is. It decides nothing about what it may; it says
// which descriptors its program is given and how it becomes ready.
type Role string

// The roles.
const (
	Worker Role = "worker"
	Room   Role = "room"
	Guard  Role = "guard"
)

// Process is the container's main process.
type Process struct {
	// Args; the first is an absolute path in the container.
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"` // KEY=VALUE, complete
	Cwd  string   `json:"cwd"`           // made if it doesn't exist, as Docker does
	UID  uint32   `json:"uid"`
	GID  uint32   `json:"gid"`
}

// Root is the root file system. It is read-only for the container's process,
// always.
type Root struct {
	// Dir is an extracted image; empty: an empty root, to which Mounts and Files
	// give everything.
	Dir string `json:"dir,omitempty"`
}

// Mount is one mount of the container, beside /proc, /sys, /dev and its parts,
// which every container has of its own.
type Mount struct {
	Type   MountType `json:"type"`
	Source string    `json:"source,omitempty"` // of a bind: absolute, without symbolic links
	Target string    `json:"target"`           // absolute in the container
	// ReadOnly makes a bind read-only. All mounts are nosuid and nodev.
	ReadOnly bool `json:"read_only,omitempty"`
	NoExec   bool `json:"no_exec,omitempty"`
	// Recursive takes along what is mounted below the source, with the same
	// attributes. Only parts of the host's programs (image: host) have it.
	Recursive bool `json:"recursive,omitempty"`
	// Size in bytes, Mode, UID and GID are those of a tmpfs; Size 0 is an error,
	// Mode 0 is 01777. UID and GID 0 are whoever the supervisor is: root, or the
	// ordinary user.
	Size int64  `json:"size,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits, sticky bit 01000 among them
	UID  uint32 `json:"uid,omitempty"`
	GID  uint32 `json:"gid,omitempty"`
}

// MountType is what is mounted.
type MountType string

// The types.
const (
	Bind  MountType = "bind"
	Tmpfs MountType = "tmpfs"
)

// File is a small file of the container's own.
type File struct {
	Path string `json:"path"`
	Data string `json:"data"`
	Mode uint32 `json:"mode"`
}

// Network says which network namespace the container has.
type Network struct {
	Mode NetworkMode `json:"mode"`
	Of   string      `json:"of,omitempty"` // service whose namespace it joins
	// AnyIP lets a room do without netfilter where the kernel lacks it: then its
	// program gets packet sockets, and arguments that say so. NetRoom alone.
	AnyIP bool `json:"any_ip,omitempty"`
}

// NetworkMode is a kind of network namespace.
type NetworkMode string

// The modes.
const (
	// NetNone is a new namespace with loopback, up, and nothing else.
	NetNone NetworkMode = "none"
	// NetRoom is a new namespace that the room program sets up.
	NetRoom NetworkMode = "room"
	// NetJoin is the namespace of another container, which runs.
	NetJoin NetworkMode = "join"
	// NetHost is the machine's: the guard's alone.
	NetHost NetworkMode = "host"
)

// Limits are enforced by cgroups (B5). Zero memory, cpu or pids is an error,
// unless Unlimited says that nothing is enforced.
type Limits struct {
	Memory int64   `json:"memory"` // bytes; no swap beyond it
	CPUs   float64 `json:"cpus"`
	PIDs   int64   `json:"pids"`
	// Unlimited: the user chose --without-limits on a machine that enforces
	// none. Shm and tmpfs keep their sizes.
	Unlimited bool `json:"unlimited,omitempty"`
	// Shm is the size of /dev/shm in bytes.
	Shm int64 `json:"shm"`
}

// Rlimit is one of setrlimit(2), by the name that Compose has for it
// ("nofile").
type Rlimit struct {
	Name string `json:"name"`
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// Restart is the restart policy.
type Restart string

// The policies. The zero value is no.
const (
	RestartNo            Restart = "no"
	RestartUnlessStopped Restart = "unless-stopped"
)

// Log bounds what is kept of what the container prints.
type Log struct {
	MaxSize  int64 `json:"max_size"` // bytes of one file; above zero
	MaxFiles int   `json:"max_files"`
}

// Port is a published port: the supervisor listens on Address, the guard gets
// the socket in the place of its own port Target.
type Port struct {
	Address string `json:"address"` // "127.0.0.1:8080"
	Target  uint16 `json:"target"`  // Publish.Listen of the policy
	Worker  string `json:"worker,omitempty"`
}

// Duration is in nanoseconds in JSON.
type Duration = time.Duration
