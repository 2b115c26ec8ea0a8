package namespace

import "github.com/llmdo/workshop/internal/engine"

// known lists, per type of the project, the fields that are translated. Any other
// field that is set is an error.
var known = engine.KnownFields{
	"ServiceConfig": {
		// To the container.
		"CapAdd", "CapDrop", "Command", "CPUS", "CustomLabels", "DNS", "DNSOpts", "DNSSearch", "Entrypoint",
		"Environment", "ExtraHosts", "Hostname", "Image", "Init", "Ipc", "Labels", "Logging", "MemLimit",
		"MemSwapLimit", "NetworkMode", "Networks", "OomScoreAdj", "PidsLimit", "Ports", "ReadOnly",
		"Restart", "Runtime", "SecurityOpt", "ShmSize", "StopGracePeriod", "Sysctls",
		"Tmpfs", "Ulimits", "User", "Volumes", "WorkingDir",
		// To the plan.
		"Build", "ContainerName", "DependsOn", "Name", "PullPolicy",
		// Readiness is a line on stdout here; the check is for plain Compose.
		"HealthCheck",
		// Notes of the compile for its renderers.
		"Extensions",
	},
	"ServiceVolumeConfig": {"Type", "Source", "Target", "ReadOnly", "Bind", "Volume", "Extensions"},
	"ServiceVolumeBind":   {"Propagation", "CreateHostPath", "Recursive", "Extensions"},
	"ServiceVolumeVolume": {"NoCopy", "Extensions"},
	"ServicePortConfig":   {"Mode", "HostIP", "Target", "Published", "Protocol", "Extensions"},
	"UlimitsConfig":       {"Single", "Soft", "Hard", "Extensions"},
	"LoggingConfig":       {"Driver", "Options", "Extensions"},
	// The guard is in the machine's network; a network is only a name.
	"NetworkConfig": {"Name", "Driver", "Labels", "CustomLabels", "Extensions"},
	"VolumeConfig":  {"Name", "Labels", "CustomLabels", "External", "Extensions"},
}

// checkKnown returns an [engine.UnknownFieldError] if v sets a field that isn't
// listed.
func checkKnown(of string, v any) error { return known.Check(kind, of, v) }
