package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"

	"github.com/llmdo/workshop/internal/engine"
)

// libpodInfo is what podman says of itself in its own API. In Docker's it has all limits,
// even where it sets none (podman: pkg/api/handlers/compat/info.go, libpod/define/info.go).
type libpodInfo struct {
	Host struct {
		Arch          string `json:"arch"` // as GOARCH
		OS            string `json:"os"`
		Kernel        string `json:"kernel"`
		Hostname      string `json:"hostname"`
		CgroupVersion string `json:"cgroupVersion"` // "v2"
		CgroupManager string `json:"cgroupManager"` // "systemd" or "cgroupfs"
		Distribution  struct {
			Distribution string `json:"distribution"`
		} `json:"distribution"`
		OCIRuntime struct {
			Name string `json:"name"`
		} `json:"ociRuntime"`
		// CgroupControllers are those that its containers really have: without root, those
		// that are delegated, and none on cgroups of version 1.
		CgroupControllers []string `json:"cgroupControllers"`
		Security          struct {
			Rootless       bool `json:"rootless"`
			SELinuxEnabled bool `json:"selinuxEnabled"`
			SeccompEnabled bool `json:"seccompEnabled"`
		} `json:"security"`
		// IDMappings are those of the service's user namespace; none with root.
		IDMappings struct {
			UIDMap []idMap `json:"uidmap"`
			GIDMap []idMap `json:"gidmap"`
		} `json:"idMappings"`
		// The programs by which it has a network without root.
		Slirp4netns program `json:"slirp4netns"`
		Pasta       program `json:"pasta"` // from podman 5 on
	} `json:"host"`
	Store struct {
		GraphRoot string `json:"graphRoot"`
	} `json:"store"`
	Version struct {
		Version string `json:"Version"`
	} `json:"version"`
}

type idMap struct {
	Size int64 `json:"size"`
}

type program struct {
	Executable string `json:"executable"` // empty: there is none
}

// pingsAsPodman reports whether the engine at a socket of this machine answers a ping with
// podman's header (podman: pkg/api/handlers/compat/ping.go). What it says of its version and
// itself takes it a quarter of a second and more each time: it asks the package manager for
// the versions of its programs.
func (e *Engine) pingsAsPodman(ctx context.Context) (yes bool) {
	if e.endpoint.socket() == "" {
		return false // its version says so
	}
	err := e.request(ctx, http.MethodGet, "/_ping", func(resp *http.Response) error {
		yes = resp.Header.Get("Libpod-Api-Version") != ""
		return nil
	})
	return err == nil && yes
}

// libpod asks podman for it.
func (e *Engine) libpod(ctx context.Context) (*libpodInfo, error) {
	var out libpodInfo
	if err := e.libpodGet(ctx, "/info", &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// maxLibpod bounds a response, in bytes.
const maxLibpod = 1 << 20

// libpodGet decodes an answer of podman's own API, by the version that the oldest podman
// here has.
func (e *Engine) libpodGet(ctx context.Context, path string, out any) error {
	return e.request(ctx, http.MethodGet, "/v4.0.0/libpod"+path, func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("podman says %s to /libpod%s", resp.Status, path)
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxLibpod))
		if err != nil {
			return err
		}
		return json.Unmarshal(text, out)
	})
}

// unknown returns the ID of a container of this name that podman has in its storage alone,
// and no build tool; "" if there is none. podman lists such a container with the command
// "storage", and those of buildah with "buildah" (podman: pkg/ps/ps.go, ListStorageContainer).
func (e *Engine) unknown(ctx context.Context, name string) (id string, err error) {
	var all []struct {
		ID      string
		Names   []string
		State   string
		Command []string
	}
	if err := e.libpodGet(ctx, "/containers/json?all=true&external=true", &all); err != nil {
		return "", err
	}
	for _, c := range all {
		if slices.Contains(c.Names, name) && c.State == "storage" && slices.Equal(c.Command, []string{"storage"}) {
			return c.ID, nil
		}
	}
	return "", nil
}

// docker is what of it is the same in Docker's API. It names no runtimes: none can be chosen.
func (p *libpodInfo) docker() system.Info {
	h := &p.Host
	return system.Info{
		ServerVersion: p.Version.Version, OSType: h.OS, Architecture: h.Arch, KernelVersion: h.Kernel, Name: h.Hostname,
		OperatingSystem: h.Distribution.Distribution, DockerRootDir: p.Store.GraphRoot, DefaultRuntime: h.OCIRuntime.Name,
		CgroupVersion: strings.TrimPrefix(h.CgroupVersion, "v"), CgroupDriver: h.CgroupManager,
	}
}

// addTo adds what Docker's API doesn't have, or has otherwise.
func (p *libpodInfo) addTo(i *engine.Info) {
	h := &p.Host
	has := func(controller string) bool { return slices.Contains(h.CgroupControllers, controller) }
	i.Limits = engine.Limits{
		Memory: has("memory"), Swap: has("memory"), CPU: has("cpu"), PIDs: has("pids"), Seccomp: h.Security.SeccompEnabled,
	}
	i.Daemon.Rootless, i.Daemon.SELinux = h.Security.Rootless, h.Security.SELinuxEnabled
	i.Daemon.NetworkHelper = cmp.Or(h.Pasta.Executable, h.Slirp4netns.Executable)
	i.Daemon.UIDs, i.Daemon.GIDs = sum(h.IDMappings.UIDMap), sum(h.IDMappings.GIDMap)
}

func sum(all []idMap) (n int64) {
	for _, m := range all {
		n += m.Size
	}
	return n
}
