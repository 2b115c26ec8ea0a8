package compose

import (
	"github.com/llmdo/workshop/workshop"
)

// hostImage binds the host's programs over our nearly empty image: /usr and
// friends and the few files of /etc that programs need, read-only.
func (m *machine) hostImage(k *workshop.Container, a *addition) {
	if k.Build != nil || k.Image.V != workshop.HostImage {
		return
	}
	if !m.f.Local {
		m.list.add("engine-elsewhere", k.Image.Source.Range, "the engine does not see this machine's files, so `image: host` can't be used",
			"It mounts this machine's /usr.", "name an image, such as `image: debian:stable-slim`")
		return
	}
	if len(m.f.HostPaths) == 0 {
		m.list.add("host-image", k.Image.Source.Range, "`image: host` needs a Linux machine", "No /usr was found here.", "name an image, such as `image: debian:stable-slim`")
		return
	}
	for _, p := range m.f.HostPaths {
		a.volumes = append(a.volumes, bind(p, p, true))
	}
}
