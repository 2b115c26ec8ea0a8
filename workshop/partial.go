package workshop

import (
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/diag"
)

// workerEntry is one item of `workers:` as it is written: a name, or a mapping
// with a name.
type workerEntry struct {
	Name Value[string]
	// File is the `file:` key, relative to workshop.yaml; V is empty when the
	// worker is to be found by name.
	File Value[string]
	// Container is the `container:` key; nil when it is absent.
	Container *partialContainer
	// Source is the whole item.
	Source diag.Source
}

// partialContainer is a `container:` as it is written: every key may be
// absent (nil), and a key that is present keeps where it stands. Everything
// in it is already well formed; a key whose value was refused is absent and
// stands in Refused.
type partialContainer struct {
	Source diag.Source // the mapping

	Image   *Value[string]
	Build   *Build
	Pull    *Value[PullPolicy]
	User    *Value[string]
	Workdir *Value[string]
	Network *partialNetwork
	// Mounts is nil when absent; an empty list means no mount.
	Mounts                  *[]Mount
	Scratch, Tmp, Shm, Home *Value[Size]
	Resources               *partialResources
	Env                     map[string]Value[string]
	// Secrets of a worker have a name and a place only; those of the workshop
	// have Env or File too.
	Secrets *[]Secret
	Ports   *[]Port
	Runtime *Value[string]

	// Keys gives the place of every key that stands in the mapping, by its
	// path below container: "mounts", "network", "network.mode",
	// "resources.memory".
	Keys map[string]diag.Range
	// Refused holds the paths whose value has an error already: checks that
	// would only repeat it are left out for these.
	Refused map[string]bool
}

// partialNetwork is a `network:` as it is written. The short form sets Mode
// alone.
type partialNetwork struct {
	Source diag.Source
	Mode   *Value[firewall.Mode]
	// Allow and Deny are nil when absent; an empty list allows nothing.
	// Presets are expanded.
	Allow, Deny *[]firewall.Rule
	DNS         *[]Value[string]
	Proxy       *Value[string]
	OwnRoom     *Value[bool] // `room: own`
}

// partialResources is a `resources:` as it is written.
type partialResources struct {
	Source  diag.Source
	Memory  *Value[Size]
	CPU     *Value[float64]
	PIDs    *Value[int64]
	Timeout *Value[time.Duration]
}
