// Package spec is the complete description of a container of the namespace engine.
// The engine translates it from a service of the project, the supervisor keeps it,
// and package container starts it. Nothing else determines a container.
//
// It is pure data, as JSON between the programs; an unknown key is an error.
package spec

import "time"

// Version of the format. Programs of different versions refuse each other.
const Version = 2

// Container is one service of a project, ready to be started.
type Container struct {
	Version int    `json:"version"`
	Name    string `json:"name"`    // as Compose forms it: project-service-1
	Service string `json:"service"` // unique in a project
	Role    Role   `json:"role"`
	// Labels as on a Docker container: project, directory, hash.
	Labels  map[string]string `json:"labels,omitempty"`
	Image   string            `json:"image"`              // reference, for display
	ImageID string            `json:"image_id,omitempty"` // digest of its configuration

	Process Process `json:"process"`
	Root    Root    `json:"root"`
	// Mounts in the order in which they are made; a later one may be inside an
	// earlier one.
	Mounts []Mount `json:"mounts,omitempty"`
	// Files are small read-only files such as /etc/hosts, which replace those of
	// the root.
	Files    []File `json:"files,omitempty"`
	Hostname string `json:"hostname"`
	// Devices of the machine besides the harmless ones that every container gets: "kvm", of a
	// worker that is a virtual machine.
	Devices []string `json:"devices,omitempty"`

	Network Network `json:"network"`
	// Sysctls of the network namespace, such as
	// "net.ipv4.ip_unprivileged_port_start", for containers with a new one only.
	Sysctls map[string]string `json:"sysctls,omitempty"`

	Limits  Limits   `json:"limits"`
	Rlimits []Rlimit `json:"rlimits,omitempty"`
	// Capabilities that are kept, by name ("CAP_NET_ADMIN"); empty: none. They are
	// in all sets of the process, and the bounding set has no others.
	Capabilities []string `json:"capabilities,omitempty"`
	// Seccomp is the filter: an array of struct sock_filter
	// (linux/filter.h) in the machine's byte order. Empty is an error.
	Seccomp []byte `json:"seccomp"`
	// Landlock, if the kernel has it, restricts writing a second time to what
	// Mounts make writable.
	Landlock bool `json:"landlock,omitempty"`
	OOMScore int  `json:"oom_score_adj,omitempty"`

	Restart Restart  `json:"restart,omitempty"`
	Grace   Duration `json:"grace"` // between the stop signal and SIGKILL
	Log     Log      `json:"log"`
	// Ports on which the supervisor listens for the guard.
	Ports []Port `json:"ports,omitempty"`
}

// Role is the role of a container. It grants nothing; it determines which
// descriptors its program gets and how it becomes ready.
type Role string

// The roles.
const (
	Worker Role = "worker"
	Room   Role = "room"
	Guard  Role = "guard"
	// Outlet makes the connections of a worker whose kernel isn't this machine's.
	Outlet Role = "outlet"
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
	// Dir is an extracted image; empty: an empty root with Mounts and Files only.
	Dir string `json:"dir,omitempty"`
}

// Mount is one mount of the container, besides /proc, /sys, /dev and its parts,
// which every container gets.
type Mount struct {
	Type   MountType `json:"type"`
	Source string    `json:"source,omitempty"` // of a bind: absolute, without symbolic links
	Target string    `json:"target"`           // absolute in the container
	// ReadOnly makes a bind read-only. All mounts are nosuid and nodev.
	ReadOnly bool `json:"read_only,omitempty"`
	NoExec   bool `json:"no_exec,omitempty"`
	// Recursive includes the mounts below the source, with the same attributes.
	// Only parts of the host's programs (image: host) have it.
	Recursive bool `json:"recursive,omitempty"`
	// Size in bytes, Mode, UID and GID are those of a tmpfs; Size 0 is an error,
	// Mode 0 is 01777. UID and GID 0 mean the supervisor's user: root, or the
	// unprivileged caller.
	Size int64  `json:"size,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits, sticky bit 01000 among them
	UID  uint32 `json:"uid,omitempty"`
	GID  uint32 `json:"gid,omitempty"`
}

// MountType is the type of a mount.
type MountType string

// The types.
const (
	Bind  MountType = "bind"
	Tmpfs MountType = "tmpfs"
)

// File is a small read-only file of the container.
type File struct {
	Path string `json:"path"`
	Data string `json:"data"`
	Mode uint32 `json:"mode"`
}

// Network selects the container's network namespace.
type Network struct {
	Mode NetworkMode `json:"mode"`
	Of   string      `json:"of,omitempty"` // service whose namespace it joins
	// AnyIP permits a room without netfilter if the kernel lacks it: its program
	// then gets packet sockets, and arguments for them. For NetRoom only.
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
	// NetJoin is the namespace of another container, which must be running.
	NetJoin NetworkMode = "join"
	// NetHost is the machine's: the guard's alone.
	NetHost NetworkMode = "host"
)

// Limits are enforced by cgroups (B5). Zero memory, cpu or pids is an error unless
// Unlimited is set.
type Limits struct {
	Memory int64   `json:"memory"` // bytes; no swap beyond it
	CPUs   float64 `json:"cpus"`
	PIDs   int64   `json:"pids"`
	// Unlimited: the user chose --without-limits on a machine that can't enforce
	// limits. Shm and tmpfs keep their sizes.
	Unlimited bool `json:"unlimited,omitempty"`
	// Shm is the size of /dev/shm in bytes.
	Shm int64 `json:"shm"`
}

// Rlimit is a limit of setrlimit(2), by its name in Compose ("nofile").
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

// Log bounds the kept output of the container.
type Log struct {
	MaxSize  int64 `json:"max_size"` // bytes of one file; positive
	MaxFiles int   `json:"max_files"`
}

// Port is a published port: the supervisor listens on Address, and the guard uses
// the socket for the port Target.
type Port struct {
	Address string `json:"address"` // "127.0.0.1:8080"
	Target  uint16 `json:"target"`  // Publish.Listen of the policy
	Worker  string `json:"worker,omitempty"`
}

// Duration is in nanoseconds in JSON.
type Duration = time.Duration
