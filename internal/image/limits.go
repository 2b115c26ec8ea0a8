package image

import "cmp"

// Limits bound the cost of one image (B60). 0 means the default.
type Limits struct {
	Bytes   int64 // of all unpacked layers together: 32 GiB
	Entries int64 // of all layers together: 1,000,000
	Layers  int   // 256
	Name    int   // bytes of an entry's name, and of a link's target: 4096
	Depth   int   // of a name, in components: 128
}

// Fixed limits.
const (
	maxManifest  = 4 << 20   // bytes of a manifest or index, the same as in registries
	maxConfig    = 8 << 20   // bytes of a configuration
	maxNesting   = 4         // indexes in indexes
	maxComponent = 255       // bytes of one component of a name (NAME_MAX)
	maxEnv       = 1000      // variables of a configuration, and volumes
	maxText      = 32 << 10  // bytes of one text of a configuration
	maxWindow    = 128 << 20 // bytes of zstd's window: zstd -22 and --long=27
	maxMembers   = 100_000   // entries of a docker-archive
)

func (l Limits) withDefaults() Limits {
	return Limits{
		Bytes:   cmp.Or(l.Bytes, 32<<30),
		Entries: cmp.Or(l.Entries, 1_000_000),
		Layers:  cmp.Or(l.Layers, 256),
		Name:    cmp.Or(l.Name, 4096),
		Depth:   cmp.Or(l.Depth, 128),
	}
}

// archives returns the size limit of all layers' archives: apart from headers and
// padding they aren't larger than their files.
func (l Limits) archives() int64 { return l.Bytes + 4096*l.Entries }
