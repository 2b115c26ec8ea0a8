package workshop

import (
	"time"

	"github.com/llmdo/workshop/firewall"
)

// defaultContainer is a `container:` of which nothing is written.
func defaultContainer() Container {
	return Container{
		Pull:    Value[PullPolicy]{V: PullMissing},
		Kernel:  Value[Kernel]{V: KernelHost},
		Workdir: Value[string]{V: "/workspace"},
		Network: Network{Mode: Value[firewall.Mode]{V: firewall.None}},
		Scratch: Value[Size]{V: 256 << 20},
		Tmp:     Value[Size]{V: 512 << 20},
		Shm:     Value[Size]{V: 64 << 20},
		Home:    Value[Size]{V: 256 << 20},
		Resources: Resources{
			Memory:  Value[Size]{V: 2 << 30},
			CPU:     Value[float64]{V: 1},
			PIDs:    Value[int64]{V: 256},
			Timeout: Value[time.Duration]{V: 10 * time.Minute},
		},
	}
}

// setScalars takes over what a file says per key, for a workshop and a worker
// alike.
func setScalars(out *Container, c *partialContainer) {
	set(&out.Pull, c.Pull)
	set(&out.User, c.User)
	set(&out.Workdir, c.Workdir)
	set(&out.Scratch, c.Scratch)
	set(&out.Tmp, c.Tmp)
	set(&out.Shm, c.Shm)
	set(&out.Home, c.Home)
	set(&out.GitAuthor, c.GitAuthor)
	set(&out.Kernel, c.Kernel)
	if r := c.Resources; r != nil {
		set(&out.Resources.Memory, r.Memory)
		set(&out.Resources.CPU, r.CPU)
		set(&out.Resources.PIDs, r.PIDs)
		set(&out.Resources.Timeout, r.Timeout)
	}
}

// withDefaults is the workshop's container: what is written, and the defaults.
func withDefaults(c *partialContainer) Container {
	out := defaultContainer()
	out.Source = c.Source
	set(&out.Image, c.Image)
	out.Build = c.Build
	setScalars(&out, c)
	set(&out.Runtime, c.Runtime)
	out.Env = c.Env
	if c.Mounts != nil {
		out.Mounts = *c.Mounts
	}
	if c.Secrets != nil {
		out.Secrets = *c.Secrets
	}
	if c.Caches != nil {
		out.Caches = *c.Caches
	}
	if c.Ports != nil {
		out.Ports = *c.Ports
	}
	if n := c.Network; n != nil {
		out.Network.Source = n.Source
		set(&out.Network.Mode, n.Mode)
		if n.Proxy != nil {
			out.Network.Proxy = *n.Proxy
		}
		set(&out.Network.ProxyCredential, n.ProxyCredential)
		set(&out.Network.OwnRoom, n.OwnRoom)
		if n.Allow != nil {
			out.Network.Allow = *n.Allow
		}
		if n.Deny != nil {
			out.Network.Deny = *n.Deny
		}
		if n.Agents != nil {
			out.Network.Agents = *n.Agents
		}
		if n.DNS != nil {
			out.Network.DNS = *n.DNS
		}
	}
	return out
}
