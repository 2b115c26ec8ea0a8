package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/mount"
)

// B3: what an image declares as a volume is not a writable one on the disk.
func TestVolumesOfTheImageAreCovered(t *testing.T) {
	h := &container.HostConfig{
		Tmpfs:  map[string]string{"/tmp": "size=1m"},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/work", Target: "/work", ReadOnly: true}},
	}
	if err := cover(h, []string{"/data/", "/tmp", "/work"}); err != nil {
		t.Fatal(err)
	}
	if len(h.Mounts) != 2 {
		t.Fatalf("mounts %v", h.Mounts)
	}
	if m := h.Mounts[1]; m.Target != "/data" || m.Type != mount.TypeTmpfs || m.TmpfsOptions.SizeBytes <= 0 {
		t.Errorf("%+v", m)
	}
}

// B7: for a volume that an image declares inside of a mount, nothing is made on this
// machine.
func TestVolumesOfTheImageInsideOfMounts(t *testing.T) {
	for volume, refused := range map[string]bool{"/work/.git/hooks": true, "/work/deep/er": true, "/workspace": false, "/work": false, "/work/own": false} {
		h := &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/x", Target: "/work"}, {Type: mount.TypeBind, Source: "/y", Target: "/work/own"}}}
		if err := cover(h, []string{volume}); (err != nil) != refused {
			t.Errorf("%s: %v", volume, err)
		}
	}
}

// B7, B12: links of an image don't lead a mount into another one.
func TestLinksOfTheImage(t *testing.T) {
	tests := []struct {
		name    string
		refused bool
		links   map[string]string
		targets []string
	}{
		{"none", false, nil, []string{"/workspace", "/workspace/x"}},
		{"to workshop-init", true, map[string]string{"/data": "/opt/workshop"}, []string{"/data/workshop-init"}},
		{"to its directory", true, map[string]string{"/data": "/opt/workshop"}, []string{"/data"}},
		{"above it", true, map[string]string{"/data": "/opt"}, []string{"/data"}},
		{"below another link", true, map[string]string{"/a": "/b", "/b/c": "/opt/workshop"}, []string{"/a/c/x"}},
		{"to the list of users", true, map[string]string{"/data": "/etc"}, []string{"/data/passwd"}},
		{"a mount around the list of users", true, map[string]string{"/workspace": "/etc"}, []string{"/workspace"}},
		{"ours into a mount", true, map[string]string{"/run": "/workspace/out"}, []string{"/workspace"}},
		{"to procfs", true, map[string]string{"/data": "/proc/1"}, []string{"/data/x"}},
		{"two at one place", true, map[string]string{"/data": "/workspace"}, []string{"/workspace", "/data"}},
		{"programs", false, map[string]string{"/lib": "/usr/lib"}, []string{"/lib/plugin"}},
		{"programs in a mount", true, map[string]string{"/lib": "/usr/lib"}, []string{"/lib/plugin", "/usr"}},
		{"/var/run", false, map[string]string{"/var/run": "/run"}, []string{"/workspace"}},
		{"homes", false, map[string]string{"/home": "/usr/home"}, []string{"/workspace"}},
		{"hidden by a mount", false, map[string]string{"/workspace/x": "/opt/workshop"}, []string{"/workspace", "/workspace/x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			own := []string{"/opt/workshop", "/run/secrets/key", "/etc/passwd", "/etc/group", "/tmp", "/scratch", "/home/worker"}
			err := imageLinks(append(own, test.targets...), map[string]string{}, func(p string) (string, error) { return test.links[p], nil })
			if (err != nil) != test.refused {
				t.Error(err)
			}
		})
	}
}

// B7, B12: the engine says where the links of an image lead, without starting it.
func TestLinksOfARealImage(t *testing.T) {
	e := realEngine(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for name, to := range map[string]string{"data": "opt/workshop", "lib": "usr/lib", "a": "b", "b/c": "/opt/../opt/workshop"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ref := "workshop-links-test:" + strings.ToLower(rand.Text()[:8])
	said, err := e.cli.ImageImport(t.Context(), image.ImportSource{Source: &b, SourceName: "-"}, ref, image.ImportOptions{Changes: []string{`VOLUME ["/data/v"]`}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, said)
	said.Close()
	t.Cleanup(func() { _, _ = e.cli.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}) })
	for target, refused := range map[string]bool{"/data/workshop-init": true, "/a/c/workshop-init": true, "/lib/x": false, "/workspace": false} {
		c := &creation{config: &container.Config{Image: ref}, host: &container.HostConfig{Mounts: []mount.Mount{
			{Type: mount.TypeVolume, Source: "v", Target: "/opt/workshop"}, {Type: mount.TypeBind, Source: "/x", Target: target}}}}
		begin, seen := time.Now(), &linksSeen{at: map[string]string{}}
		if err := e.checkImageLinks(t.Context(), c, seen); (err != nil) != refused {
			t.Errorf("%s: %v", target, err)
		}
		t.Logf("%s: %v", target, time.Since(begin))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := e.checkImageLinks(ended, c, seen); (err != nil) != refused || errors.Is(err, context.Canceled) {
			t.Errorf("%s: the next worker of the image, without the engine: %v", target, err)
		}
	}
}
