package docker

import (
	"github.com/llmdo/workshop/internal/engine"

	"github.com/llmdo/workshop/internal/promise"
)

// known lists, per type of the project, the fields that are translated. Any other
// field that is set is an error.
var known = engine.KnownFields{
	"ServiceConfig": {
		// To the container.
		"CapAdd", "CapDrop", "Command", "CPUS", "CustomLabels", "DNS", "DNSOpts", "DNSSearch", "Entrypoint",
		"Environment", "Expose", "ExtraHosts", "Hostname", "Image", "Init", "Ipc", "Labels", "Logging", "MemLimit",
		"MemReservation", "MemSwapLimit", "NetworkMode", "Networks", "OomScoreAdj", "PidsLimit", "Platform", "Ports", "ReadOnly",
		"Restart", "Runtime", "Secrets", "SecurityOpt", "ShmSize", "StdinOpen", "StopGracePeriod", "StopSignal", "Sysctls",
		"Tmpfs", "Tty", "Ulimits", "User", "UserNSMode", "Volumes", "WorkingDir",
		// To the plan.
		"Build", "ContainerName", "DependsOn", "Name", "PullPolicy",
		// Readiness is a line on stdout here. The check is for plain Compose, and an
		// exec per interval and container isn't free.
		"HealthCheck",
		// Notes of the compile for its renderers.
		"Extensions",
	},
	"ServiceVolumeConfig":  {"Type", "Source", "Target", "ReadOnly", "Bind", "Volume", "Tmpfs", "Extensions"},
	"ServiceVolumeBind":    {"Propagation", "CreateHostPath", "Recursive", "Extensions"},
	"ServiceVolumeVolume":  {"NoCopy", "Extensions"},
	"ServiceVolumeTmpfs":   {"Size", "Mode", "Extensions"},
	"ServiceNetworkConfig": {"Aliases", "Ipv4Address", "Ipv6Address", "UseServiceNameAlias", "Extensions"},
	"ServicePortConfig":    {"Mode", "HostIP", "Target", "Published", "Protocol", "Extensions"},
	"ServiceSecretConfig":  {"Source", "Target", "UID", "GID", "Mode", "Extensions"},
	"UlimitsConfig":        {"Single", "Soft", "Hard", "Extensions"},
	"LoggingConfig":        {"Driver", "Options", "Extensions"},
	"NetworkConfig":        {"Name", "Driver", "DriverOpts", "Internal", "Ipam", "Labels", "CustomLabels", "EnableIPv6", "External", "Extensions"},
	"IPAMConfig":           {"Driver", "Config", "Extensions"},
	"IPAMPool":             {"Subnet", "Gateway", "IPRange", "Extensions"},
	"VolumeConfig":         {"Name", "Labels", "CustomLabels", "External", "Extensions"},
	"BuildConfig":          {"Context", "Dockerfile", "Args", "Target", "Labels", "Extensions"},
}

// checkKnown returns an [engine.UnknownFieldError] if v sets a field that isn't
// listed.
func checkKnown(of string, v any) error { return known.Check(promise.Docker, of, v) }
