package container

// capabilities that a container may keep: only those of a room
// (linux/capability.h).
var capabilities = map[string]int{
	"CAP_NET_BIND_SERVICE": 10,
	"CAP_NET_ADMIN":        12,
}

// rlimits by their names in Compose (asm-generic/resource.h, the same on amd64 and
// arm64).
var rlimits = map[string]int{
	"cpu": 0, "fsize": 1, "data": 2, "stack": 3, "core": 4, "rss": 5, "nproc": 6, "nofile": 7, "memlock": 8,
	"as": 9, "locks": 10, "sigpending": 11, "msgqueue": 12, "nice": 13, "rtprio": 14, "rttime": 15,
}

// kvmDevice is the one device besides the harmless ones, by which a virtual machine runs (B6).
const kvmDevice = "kvm"
