package docker

import (
	"maps"
	"reflect"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// notStored are the settings that aren't compared, with the reason.
var notStored = map[string]string{
	"Config.Hostname":        "a name, which a worker that joins a room has from there",
	"Config.Domainname":      "a name",
	"Config.AttachStdin":     "of the create call's own terminal, which it doesn't have",
	"Config.AttachStdout":    "of the create call's own terminal, which it doesn't have",
	"Config.AttachStderr":    "of the create call's own terminal, which it doesn't have",
	"Config.ExposedPorts":    "publishes nothing: PortBindings and PublishAllPorts do",
	"Config.StdinOnce":       "without OpenStdin it has no effect",
	"Config.Cmd":             "what runs is Path and Args",
	"Config.Entrypoint":      "what runs is Path and Args",
	"Config.ArgsEscaped":     "Windows",
	"Config.Volumes":         "what the image declares; what is mounted is in Mounts",
	"Config.NetworkDisabled": "stricter",
	"Config.MacAddress":      "an address on the project's own network",
	"Config.OnBuild":         "of builds",
	"Config.StopSignal":      "the image's; a container that doesn't stop is killed",
	"Config.StopTimeout":     "a container that doesn't stop is killed",
	"Config.Shell":           "of builds",

	"HostConfig.ContainerIDFile":      "a file of the docker command",
	"HostConfig.VolumeDriver":         "of Binds, which are compared",
	"HostConfig.ConsoleSize":          "of a terminal",
	"HostConfig.StorageOpt":           "of the root file system, which is read-only",
	"HostConfig.Isolation":            "Windows",
	"HostConfig.CPUShares":            "a weight below the limit",
	"HostConfig.BlkioWeight":          "a weight, and no limit is asked for",
	"HostConfig.BlkioWeightDevice":    "a weight, and no limit is asked for",
	"HostConfig.BlkioDeviceReadBps":   "stricter: no limit is asked for",
	"HostConfig.BlkioDeviceWriteBps":  "stricter: no limit is asked for",
	"HostConfig.BlkioDeviceReadIOps":  "stricter: no limit is asked for",
	"HostConfig.BlkioDeviceWriteIOps": "stricter: no limit is asked for",
	"HostConfig.CPUPeriod":            "of CPUQuota, with which it is compared",
	"HostConfig.CPURealtimePeriod":    "of CPURealtimeRuntime, which is compared",
	"HostConfig.CpusetCpus":           "stricter: which processors, not how much",
	"HostConfig.CpusetMems":           "stricter: which memory, not how much",
	"HostConfig.KernelMemory":         "stricter",
	"HostConfig.KernelMemoryTCP":      "stricter",
	"HostConfig.MemorySwappiness":     "a preference: swap has its limit",
	"HostConfig.CPUCount":             "Windows",
	"HostConfig.CPUPercent":           "Windows",
	"HostConfig.IOMaximumIOps":        "Windows",
	"HostConfig.IOMaximumBandwidth":   "Windows",

	"Mount.Consistency":                  "Docker Desktop's cache",
	"Mount.ClusterOptions":               "of swarm services",
	"BindOptions.ReadOnlyNonRecursive":   "no bind is recursive",
	"BindOptions.ReadOnlyForceRecursive": "no bind is recursive",
	"VolumeOptions.Labels":               "of a volume that the engine makes anew; the planner reads those of the volume",

	"MountPoint.Name":   "of a volume, by which it is compared: TestStoredFindsEach",
	"MountPoint.Driver": "of a volume, which exists",
	"MountPoint.Mode":   "relabelling for SELinux, by the engine's default for volumes",
}

// Every field of the client's types is compared, or isn't for a reason. A field that a
// later client adds fails here until somebody decides.
func TestStoredFields(t *testing.T) {
	unused := maps.Clone(notStored)
	for name, get := range map[string]func(*container.InspectResponse) reflect.Value{
		"Config":     func(c *container.InspectResponse) reflect.Value { return reflect.ValueOf(c.Config).Elem() },
		"HostConfig": func(c *container.InspectResponse) reflect.Value { return reflect.ValueOf(c.HostConfig).Elem() },
		"Mount": func(c *container.InspectResponse) reflect.Value {
			return reflect.ValueOf(&c.HostConfig.Mounts[at(c.HostConfig, "/output")]).Elem()
		},
		"BindOptions": func(c *container.InspectResponse) reflect.Value {
			return reflect.ValueOf(c.HostConfig.Mounts[at(c.HostConfig, "/output")].BindOptions).Elem()
		},
		"VolumeOptions": func(c *container.InspectResponse) reflect.Value {
			return reflect.ValueOf(c.HostConfig.Mounts[at(c.HostConfig, "/opt/workshop")].VolumeOptions).Elem()
		},
		"TmpfsOptions": func(c *container.InspectResponse) reflect.Value {
			return reflect.ValueOf(c.HostConfig.Mounts[at(c.HostConfig, "/cover")].TmpfsOptions).Elem()
		},
		"MountPoint": func(c *container.InspectResponse) reflect.Value {
			for i := range c.Mounts {
				if c.Mounts[i].Type == mount.TypeBind {
					return reflect.ValueOf(&c.Mounts[i]).Elem()
				}
			}
			return reflect.Value{}
		},
	} {
		typ := get(storedExample(t).Inspected).Type()
		for _, f := range reflect.VisibleFields(typ) {
			if f.Anonymous {
				continue
			}
			compared := false
			for _, set := range []func(reflect.Value){fillValue, reflect.Value.SetZero} {
				c := storedExample(t)
				set(get(c.Inspected).FieldByIndex(f.Index))
				compared = compared || len(stored(c.sent(), c.Inspected, recordings(t)[storedBase].info())) > 0
			}
			key := name + "." + f.Name
			switch reason := notStored[key]; {
			case !compared && reason == "":
				t.Errorf("%s is neither compared nor in the list of what isn't", key)
			case compared && reason != "":
				t.Errorf("%s is compared, although %s", key, reason)
			}
			delete(unused, key)
		}
	}
	for key := range unused {
		t.Errorf("%s is not a field", key)
	}
}

// storedExample is a worker with every kind of mount.
func storedExample(t *testing.T) recorded {
	c := recordings(t)[storedBase].Containers["one"]
	for _, h := range []*container.HostConfig{c.Host, c.Inspected.HostConfig} {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeTmpfs, Target: "/cover", TmpfsOptions: &mount.TmpfsOptions{SizeBytes: imageVolumeSize, Mode: 0o1777}})
	}
	c.Inspected.Mounts = append(c.Inspected.Mounts, container.MountPoint{Type: mount.TypeTmpfs, Destination: "/cover", RW: true})
	return c
}
