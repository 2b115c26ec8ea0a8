package docker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// known lists, per type of the project, the fields that the translation
// carries out. A field that is set and not listed is an error.
var known = map[string][]string{
	"ServiceConfig": {
		// To the container.
		"CapAdd", "CapDrop", "Command", "CPUS", "CustomLabels", "DNS", "DNSOpts", "DNSSearch", "Entrypoint",
		"Environment", "Expose", "ExtraHosts", "Hostname", "Image", "Init", "Ipc", "Labels", "Logging", "MemLimit",
		"MemReservation", "MemSwapLimit", "NetworkMode", "Networks", "OomScoreAdj", "PidsLimit", "Platform", "Ports", "ReadOnly",
		"Restart", "Runtime", "Secrets", "SecurityOpt", "ShmSize", "StdinOpen", "StopGracePeriod", "StopSignal", "Sysctls",
		"Tmpfs", "Tty", "Ulimits", "User", "UserNSMode", "Volumes", "WorkingDir",
		// To the plan.
		"Build", "ContainerName", "DependsOn", "Name", "PullPolicy",
		// Readiness is a line on stdout here; the check is for plain Compose,
		// and an exec per interval and container is not free.
		"HealthCheck",
		// Notes of the compile for its writers.
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

// UnknownFieldError names fields of the project that this engine would not
// carry out.
type UnknownFieldError struct {
	Of     string // "service x"
	Fields []string
}

// Error names them.
func (e *UnknownFieldError) Error() string {
	return fmt.Sprintf("%s: the docker engine does not carry out %s", e.Of, strings.Join(e.Fields, ", "))
}

// checkKnown returns an error if v, or a struct of a listed type inside it,
// sets a field that is not known.
func checkKnown(of string, v any) error {
	var fields []string
	walkKnown(reflect.ValueOf(v), "", &fields)
	if len(fields) == 0 {
		return nil
	}
	slices.Sort(fields)
	return &UnknownFieldError{Of: of, Fields: slices.Compact(fields)}
}

func walkKnown(v reflect.Value, path string, out *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			walkKnown(v.Elem(), path, out)
		}
	case reflect.Slice:
		for i := range v.Len() {
			walkKnown(v.Index(i), path, out)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			walkKnown(v.MapIndex(key), path, out)
		}
	case reflect.Struct:
		if fields, ok := known[v.Type().Name()]; ok {
			walkFields(v, fields, path, out)
		}
	}
}

func walkFields(v reflect.Value, fields []string, path string, out *[]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		switch {
		case f.Anonymous:
			walkFields(v.Field(i), fields, path, out)
		case v.Field(i).IsZero() || empty(v.Field(i)):
		case !slices.Contains(fields, f.Name):
			*out = append(*out, strings.TrimPrefix(path+"."+f.Name, "."))
		case f.Name != "Extensions":
			walkKnown(v.Field(i), path+"."+f.Name, out)
		}
	}
}

// empty tells whether v is a slice or map without content; what has meaning
// when empty (command, entrypoint) is known.
func empty(v reflect.Value) bool {
	return (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Len() == 0
}
