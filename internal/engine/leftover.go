package engine

// LeftoverKind is a kind of object that an engine keeps.
type LeftoverKind string

// The kinds.
const (
	LeftoverContainer LeftoverKind = "container" // a helper of an interrupted command
	LeftoverVolume    LeftoverKind = "volume"
	LeftoverNetwork   LeftoverKind = "network"
	LeftoverImage     LeftoverKind = "image"
	LeftoverProgram   LeftoverKind = "program" // workshop-init
)

// Leftover is something that an engine keeps and no container uses. Caches are not
// among them ([Engine.Caches]).
type Leftover struct {
	Kind LeftoverKind `json:"kind"`
	ID   string       `json:"id"` // the engine's
	Name string       `json:"name"`
	// Project and Directory are those of an object that belongs to one project.
	Project   string `json:"project,omitempty"`
	Directory string `json:"directory,omitempty"`
	// Build identifies the content of an image that was built.
	Build string `json:"-"`
	// Bytes on disk; -1: not known.
	Bytes int64 `json:"bytes"`
	// Needed: a workshop that is down uses it again, or makes it again.
	Needed bool `json:"needed"`
}
