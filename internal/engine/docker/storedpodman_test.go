package docker

import (
	"slices"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/engine"
)

// What a flavour shows otherwise is so in its recording: without the entry a container
// that is what was asked would be refused.
func TestStoredShownOtherwise(t *testing.T) {
	all := recordings(t)
	for flavour, shown := range shownBy {
		for _, s := range shown {
			var row storedRow
			for _, r := range storedRows {
				if r.field == s.field {
					row = r
				}
			}
			if row.read == nil || s.reason == "" {
				t.Errorf("%s: %s is not a compared setting, or has no reason", flavour, s.field)
				continue
			}
			needed := false
			for _, r := range all {
				for _, c := range r.Containers {
					if r.Flavour == flavour {
						_, differs := row.compare(askedOf(c.sent(), r.info()), foundOf(c.Inspected))
						needed = needed || differs
					}
				}
			}
			if !needed {
				t.Errorf("%s: %s is shown as it was asked", flavour, s.field)
			}
		}
	}
}

func TestStoredFindsOnPodman(t *testing.T) {
	for _, a := range []alter{
		one(func(h *container.HostConfig) { h.CapDrop = h.CapDrop[1:] }, "B1", "CapDrop", "", "CAP_AUDIT_WRITE"),
		one(func(h *container.HostConfig) { h.CapAdd = []string{"CAP_SYS_ADMIN"} }, "B1", "CapDrop", "", "CAP_SYS_ADMIN"),
		one(func(h *container.HostConfig) { h.CapAdd = nil }, "B1", "CapDrop", "CAP_NET_ADMIN", "").of("room"),
		one(func(h *container.HostConfig) {
			h.SecurityOpt = slices.DeleteFunc(h.SecurityOpt, func(o string) bool { return o == "no-new-privileges" })
		}, "B2", "SecurityOpt", "no-new-privileges", ""),
		one(func(h *container.HostConfig) { h.Tmpfs["/tmp"] = "rw,nosuid,nodev,exec,mode=1777" }, "B3", "Tmpfs",
			"/tmp:exec,mode=1777,nodev,nosuid,rw,size=16m", "/tmp:exec,mode=1777,nodev,nosuid,rw"),
		one(func(h *container.HostConfig) { delete(h.Tmpfs, "/run") }, "B3", "Tmpfs", "/run:mode=0755,nodev,noexec,nosuid,ro,size=64k", ""),
		one(func(h *container.HostConfig) { h.Memory = 0 }, "B5", "Memory", "67108864", ""),
		one(func(h *container.HostConfig) { h.Ulimits[0].Hard = 1 << 20 }, "B5", "Ulimits", "nofile=4096:4096", "nofile=4096:1048576"),
		one(func(h *container.HostConfig) { h.CgroupParent = "/other" }, "B5", "CgroupParent", "", "/other"),
		one(func(h *container.HostConfig) { h.PidMode = "host" }, "B6", "PidMode", "", "host"),
		one(func(h *container.HostConfig) { h.UTSMode = "host" }, "B6", "UTSMode", "", "host"),
		one(func(h *container.HostConfig) { h.IpcMode = "host" }, "B6", "IpcMode", "", "host"),
		one(func(h *container.HostConfig) { h.Binds[0] = "/etc:/etc/group:ro,rprivate,bind" }, "B7", "Mounts",
			"/work/p/.run/door-one at /run/workshop ro non-recursive", "/etc at /etc/group ro non-recursive"),
		one(func(h *container.HostConfig) { h.Binds[5] = "/work/p/output:/output:rprivate,rbind,rw" }, "B7", "Mounts",
			"/work/p/output at /output rw non-recursive", "/work/p/output at /output rw"),
		one(func(h *container.HostConfig) { h.NetworkMode = "host" }, "B20", "NetworkMode", "container:ROOM", "host"),
		one(func(h *container.HostConfig) { h.NetworkMode = "host" }, "B20", "NetworkMode", "bridge", "host").of("guard"),
		{"guard", func(c *container.InspectResponse) {
			c.NetworkSettings.Networks = map[string]*network.EndpointSettings{"podman": {}}
		}, engine.Difference{Promise: "B20", Field: "networks", Asked: "p_default", Found: "podman"}},
		oneConfig(func(c *container.Config) { c.Env = append(c.Env, "https_proxy=http://user:secret@198.51.100.1") }, "B45", "Env", "", "https_proxy"),
	} {
		t.Run(a.want.Field+" "+a.want.Found, func(t *testing.T) {
			r := recordings(t)["podman-4.3.1"]
			c := r.Containers[a.service]
			a.change(c.Inspected)
			if diff := cmp.Diff([]engine.Difference{a.want}, stored(c.sent(), c.Inspected, r.info())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
