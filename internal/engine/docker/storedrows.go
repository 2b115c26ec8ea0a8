package docker

import (
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/strslice"
	"github.com/docker/go-connections/nat"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
)

// storedRows are the compared settings, by their names in the engine's API, with the
// promise that needs each. TestStoredFields lists the settings that aren't compared.
var storedRows = []storedRow{
	{field: "CapAdd", promise: "B1", read: func(s side) []string { return capabilities(s.host.CapAdd) }},
	{field: "CapDrop", promise: "B1", read: func(s side) []string { return capabilities(s.host.CapDrop) }},
	{field: "Privileged", promise: "B2", read: func(s side) []string { return yes(s.host.Privileged) }},
	{field: "SecurityOpt", promise: "B2", read: func(s side) []string { return securityOpts(s.host.SecurityOpt) }},
	{field: "ReadonlyRootfs", promise: "B3", read: func(s side) []string { return yes(s.host.ReadonlyRootfs) }},
	{field: "Tmpfs", promise: "B3", read: func(s side) []string { return tmpfs(s.host.Tmpfs) }},
	{field: "MaskedPaths", promise: "B3", read: func(s side) []string { return s.host.MaskedPaths }, rule: atLeast},
	{field: "ReadonlyPaths", promise: "B3", read: func(s side) []string { return s.host.ReadonlyPaths }, rule: atLeast},
	{field: "User", promise: "B4", read: func(s side) []string { return word(s.config.User) }},
	{field: "GroupAdd", promise: "B4", read: func(s side) []string { return s.host.GroupAdd }},
	{field: "Memory", promise: "B5", read: func(s side) []string { return number(s.host.Memory) }},
	{field: "MemoryReservation", promise: "B5", read: func(s side) []string { return number(s.host.MemoryReservation) }},
	{field: "MemorySwap", promise: "B5", read: func(s side) []string { return number(s.host.MemorySwap) }, rule: ifAsked},
	{field: "NanoCpus", promise: "B5", read: func(s side) []string { return cpus(s.host.Resources) }},
	{field: "CpuRealtimeRuntime", promise: "B5", read: func(s side) []string { return number(s.host.CPURealtimeRuntime) }},
	{field: "PidsLimit", promise: "B5", read: func(s side) []string { return limit(s.host.PidsLimit) }},
	{field: "Ulimits", promise: "B5", read: func(s side) []string { return ulimits(s.host.Ulimits) }, rule: atLeast},
	{field: "ShmSize", promise: "B5", read: func(s side) []string { return number(s.host.ShmSize) }, rule: ifAsked},
	{field: "OomScoreAdj", promise: "B5", read: func(s side) []string { return number(int64(s.host.OomScoreAdj)) }},
	{field: "OomKillDisable", promise: "B5", read: func(s side) []string { return yes(s.host.OomKillDisable != nil && *s.host.OomKillDisable) }},
	{field: "CgroupParent", promise: "B5", read: func(s side) []string { return word(s.host.CgroupParent) }},
	{field: "LogConfig", promise: "B5", read: func(s side) []string { return logConfig(s.host.LogConfig) }, rule: atLeast},
	{field: "LogConfig.Type", promise: "B5", read: func(s side) []string { return word(s.host.LogConfig.Type) }},
	{field: "PidMode", promise: "B6", read: func(s side) []string { return word(string(s.host.PidMode)) }},
	{field: "IpcMode", promise: "B6", read: func(s side) []string { return word(string(s.host.IpcMode)) }},
	{field: "UTSMode", promise: "B6", read: func(s side) []string { return word(string(s.host.UTSMode)) }},
	{field: "CgroupnsMode", promise: "B6", read: func(s side) []string { return word(string(s.host.CgroupnsMode)) }},
	{field: "UsernsMode", promise: "B6", read: func(s side) []string { return word(string(s.host.UsernsMode)) }},
	{field: "Cgroup", promise: "B6", read: func(s side) []string { return word(string(s.host.Cgroup)) }},
	{field: "Devices", promise: "B6", read: func(s side) []string { return texts(s.host.Devices) }},
	{field: "DeviceRequests", promise: "B6", read: func(s side) []string { return texts(s.host.DeviceRequests) }},
	{field: "DeviceCgroupRules", promise: "B6", read: func(s side) []string { return s.host.DeviceCgroupRules }},
	{field: "Sysctls", promise: "B6", read: func(s side) []string { return pairs(s.host.Sysctls) }},
	{field: "WorkingDir", promise: "B6", read: func(s side) []string { return word(s.config.WorkingDir) }, rule: ifAsked},
	{field: "Binds", promise: "B7", read: func(s side) []string { return s.host.Binds }},
	{field: "Mounts", promise: "B7", read: func(s side) []string { return mounts(s.host.Mounts) }},
	{field: "mounts in use", promise: "B7", read: func(s side) []string { return mountPoints(s.mounts) }},
	{field: "VolumesFrom", promise: "B7", read: func(s side) []string { return s.host.VolumesFrom }},
	{field: "PortBindings", promise: "B10", read: func(s side) []string { return portBindings(s.host.PortBindings) }},
	{field: "PublishAllPorts", promise: "B10", read: func(s side) []string { return yes(s.host.PublishAllPorts) }},
	{field: "Entrypoint", promise: "B12", read: func(s side) []string { return word(fmt.Sprintf("%q", s.main)) }},
	{field: "Init", promise: "B12", read: func(s side) []string { return yes(s.host.Init != nil && *s.host.Init) }},
	{field: "Healthcheck", promise: "B12", read: func(s side) []string { return healthcheck(s.config.Healthcheck) }},
	{field: "NetworkMode", promise: "B20", read: func(s side) []string { return word(string(s.host.NetworkMode)) }},
	{field: "networks", promise: "B20", read: func(s side) []string { return sortedKeys(s.networks) }},
	{field: "Links", promise: "B20", read: func(s side) []string { return s.host.Links }},
	{field: "Dns", promise: "B23", read: func(s side) []string { return s.host.DNS }},
	{field: "DnsOptions", promise: "B23", read: func(s side) []string { return s.host.DNSOptions }},
	{field: "DnsSearch", promise: "B23", read: func(s side) []string { return s.host.DNSSearch }},
	{field: "ExtraHosts", promise: "B23", read: func(s side) []string { return s.host.ExtraHosts }},
	{field: "RestartPolicy", promise: "B29", read: func(s side) []string { return restartPolicy(s.host.RestartPolicy) }},
	{field: "AutoRemove", promise: "B29", read: func(s side) []string { return yes(s.host.AutoRemove) }},
	{field: "Runtime", promise: "B30", read: func(s side) []string { return word(s.host.Runtime) }},
	{field: "Annotations", promise: "B30", read: func(s side) []string { return pairs(s.host.Annotations) }},
	{field: "Tty", promise: "B43", read: func(s side) []string { return yes(s.config.Tty) }},
	{field: "OpenStdin", promise: "B43", read: func(s side) []string { return yes(s.config.OpenStdin) }},
	{field: "Env", promise: "B45", read: func(s side) []string { return s.config.Env }},
	{field: "Image", promise: "B46", read: func(s side) []string { return word(s.config.Image) }},
	{field: "Labels", read: func(s side) []string { return labels(s.config.Labels) }, rule: atLeast},
}

func word(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func yes(b bool) []string {
	if !b {
		return nil
	}
	return []string{"true"}
}

func number(n int64) []string {
	if n == 0 {
		return nil
	}
	return []string{strconv.FormatInt(n, 10)}
}

// limit reads a limit for which 0 and negative numbers are none, too.
func limit(n *int64) []string {
	if n == nil || *n < 0 {
		return nil
	}
	return number(*n)
}

func pairs(m map[string]string) (out []string) {
	for k, v := range m {
		out = append(out, k+"="+v)
	}
	return out
}

func texts[T any](all []T) (out []string) {
	for _, v := range all {
		out = append(out, fmt.Sprintf("%+v", v))
	}
	return out
}

// capabilities returns the kernel's names: engines accept and show them also without
// the prefix.
func capabilities(names strslice.StrSlice) (out []string) {
	for _, name := range names {
		name = strings.ToUpper(name)
		if name != "ALL" && !strings.HasPrefix(name, "CAP_") {
			name = "CAP_" + name
		}
		out = append(out, name)
	}
	return out
}

// securityOpts returns a seccomp profile by its hash, or by its path. Of
// no-new-privileges engines show the name alone, too.
func securityOpts(opts []string) (out []string) {
	for _, o := range opts {
		o = strings.TrimSuffix(o, "=true")
		if profile, ok := strings.CutPrefix(o, "seccomp="); ok && strings.HasPrefix(strings.TrimSpace(profile), "{") {
			o = fmt.Sprintf("seccomp=sha256:%x", sha256.Sum256([]byte(profile)))
		}
		out = append(out, o)
	}
	return out
}

func tmpfs(m map[string]string) (out []string) {
	for target, options := range m {
		list := strings.Split(options, ",")
		slices.Sort(list)
		out = append(out, path.Clean(target)+":"+strings.Join(list, ","))
	}
	return out
}

// cpus returns billionths of a processor: engines store them as such, or as a quota.
func cpus(r container.Resources) []string {
	out := number(r.NanoCPUs)
	if r.CPUQuota > 0 {
		period := r.CPUPeriod
		if period == 0 {
			period = 100_000 // the kernel's default, in microseconds
		}
		out = append(out, number(r.CPUQuota*1_000_000_000/period)...)
	}
	return out
}

func ulimits(all []*container.Ulimit) (out []string) {
	for _, u := range all {
		if u != nil {
			out = append(out, strings.ToLower(strings.TrimPrefix(u.String(), "RLIMIT_")))
		}
	}
	return out
}

func logConfig(l container.LogConfig) []string { return pairs(l.Config) }

func restartPolicy(p container.RestartPolicy) []string {
	if p.IsNone() {
		return nil
	}
	return []string{fmt.Sprintf("%s:%d", p.Name, p.MaximumRetryCount)}
}

func healthcheck(h *container.HealthConfig) []string {
	if h == nil || len(h.Test) == 0 {
		return nil
	}
	return word(fmt.Sprintf("%q", h.Test))
}

// mounts returns every part of a mount that decides what is in it and who may write
// there.
func mounts(all []mount.Mount) (out []string) {
	for _, m := range all {
		words := []string{string(m.Type), m.Source, "at", path.Clean(m.Target), access(!m.ReadOnly)}
		if o := m.BindOptions; o != nil {
			words = append(words, string(o.Propagation), ifSet("non-recursive", o.NonRecursive), ifSet("create", o.CreateMountpoint))
		}
		if o := m.VolumeOptions; o != nil {
			words = append(words, ifSet("nocopy", o.NoCopy), o.Subpath)
			if d := o.DriverConfig; d != nil {
				words = append(words, d.Name, fmt.Sprint(d.Options))
			}
		}
		if o := m.TmpfsOptions; o != nil {
			words = append(words, fmt.Sprintf("size=%d,mode=%o", o.SizeBytes, o.Mode))
			if len(o.Options) > 0 {
				words = append(words, fmt.Sprintf("%q", o.Options))
			}
		}
		if o := m.ImageOptions; o != nil {
			words = append(words, o.Subpath)
		}
		out = append(out, sentence(words))
	}
	return out
}

func mountPoints(all []container.MountPoint) (out []string) {
	for _, m := range all {
		source := m.Source
		if m.Type == mount.TypeVolume {
			source = m.Name
		}
		words := []string{string(m.Type), source, "at", path.Clean(m.Destination), access(m.RW)}
		if m.Type == mount.TypeBind {
			words = append(words, string(m.Propagation))
		}
		out = append(out, sentence(words))
	}
	return out
}

func access(writable bool) string {
	if writable {
		return "rw"
	}
	return "ro"
}

func ifSet(name string, set bool) string {
	if set {
		return name
	}
	return ""
}

func sentence(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), " ")
}

func portBindings(m nat.PortMap) (out []string) {
	for port, all := range m {
		if len(all) == 0 {
			out = append(out, "->"+string(port))
		}
		for _, b := range all {
			out = append(out, fmt.Sprintf("%s:%s->%s", b.HostIP, b.HostPort, port))
		}
	}
	return out
}

// labels returns the labels by which workshop and Compose find and recognise their
// containers; an image may have others.
func labels(m map[string]string) (out []string) {
	for _, name := range []string{
		engine.LabelProject, engine.LabelService, engine.LabelOneOff, engine.LabelComposeHash,
		compose.LabelConfigHash, compose.LabelDirectory, compose.LabelRole, compose.LabelRooms,
	} {
		if v, ok := m[name]; ok {
			out = append(out, name+"="+v)
		}
	}
	return out
}
