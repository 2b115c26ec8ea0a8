package app

import (
	"cmp"
	"context"
	"time"

	"github.com/llmdo/workshop/internal/doctor"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
	"github.com/llmdo/workshop/internal/ports"
)

// RegisteredPort is a port of this machine in the registry of this user.
type RegisteredPort struct {
	Address   string `json:"address"` // "127.0.0.1:8080"
	Project   string `json:"project"`
	Directory string `json:"directory"`
	Worker    string `json:"worker"`
	Target    uint16 `json:"target"`
	// Reserved: the file names the number; else it was chosen.
	Reserved bool `json:"reserved"`
	// Since is when the worker's port first had the number; nil: it isn't known.
	Since *time.Time `json:"since,omitempty"`
	// State is "up", "down", "directory gone" or "unknown".
	State string `json:"state"`
	// Others reserve the address, too, or were given it.
	Others []PortHolder `json:"others"`
}

// PortHolder is a worker that has a port.
type PortHolder struct {
	Project   string `json:"project"`
	Directory string `json:"directory"`
	Worker    string `json:"worker"`
}

// RegisteredPorts returns the registry of this user, by number.
func (env *Env) RegisteredPorts(ctx context.Context) ([]RegisteredPort, error) {
	seen, err := env.lookAtPorts(ctx, false)
	if err != nil {
		return nil, err
	}
	if seen.Registry != nil {
		return nil, registryError(seen.Registry)
	}
	var leases []ports.Lease
	for _, c := range seen.Claims {
		leases = append(leases, c.Lease)
	}
	all := []RegisteredPort{}
	sortfunc.Stable(seen.Claims, func(a, b doctor.PortClaim) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Dir, b.Dir), cmp.Compare(a.Worker, b.Worker))
	})
	for _, c := range seen.Claims {
		p := RegisteredPort{
			Address: c.Address().String(), Project: c.Project, Directory: c.Dir, Worker: c.Worker, Target: c.Target,
			Reserved: c.Reserved, State: string(c.State), Others: []PortHolder{},
		}
		if !c.Since.IsZero() {
			p.Since = &c.Since
		}
		for _, o := range ports.Others(leases, c.Lease) {
			p.Others = append(p.Others, PortHolder{o.Project, o.Dir, o.Worker})
		}
		all = append(all, p)
	}
	return all, nil
}
