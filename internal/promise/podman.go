package promise

// onPodman says how podman keeps promises, where that differs from Docker: it answers
// Docker's API, and the creations are in its words.
var onPodman = map[string]string{
	"B2":  "no-new-privileges and our seccomp profile, which podman reads from a file of ours",
	"B3":  "read_only, and sizes of tmpfs; read-only ones where podman would add writable ones",
	"B6":  "namespaces of its own; cgroups of version 1, whose names can be seen, are refused",
	"B13": "sandboxed and vm are refused",
	"B30": "checked before the start; `runtime:` other than podman's own is refused",
}
