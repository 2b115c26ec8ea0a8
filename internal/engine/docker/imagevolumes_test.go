package docker

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
)

// B3: what an image declares as a volume is not a writable one on the disk.
func TestVolumesOfTheImageAreCovered(t *testing.T) {
	h := &container.HostConfig{
		Tmpfs:  map[string]string{"/tmp": "size=1m"},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/work", Target: "/work", ReadOnly: true}},
	}
	cover(h, []string{"/data/", "/tmp", "/work"})
	if len(h.Mounts) != 2 {
		t.Fatalf("mounts %v", h.Mounts)
	}
	if m := h.Mounts[1]; m.Target != "/data" || m.Type != mount.TypeTmpfs || m.TmpfsOptions.SizeBytes <= 0 {
		t.Errorf("%+v", m)
	}
}
