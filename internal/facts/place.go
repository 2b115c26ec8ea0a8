package facts

import "time"

// Place is where a project is up. It is recorded before the first step of the first `up`,
// and forgotten by `down`.
type Place struct {
	Engine string // by its name, "docker"
	// Endpoint is how the engine is reached, and Context the docker context that said so;
	// empty for engines of this program.
	Endpoint string `json:",omitempty"`
	Context  string `json:",omitempty"`
	// ID is what the engine is known by, whatever its endpoint is; empty: nothing.
	ID    string `json:",omitempty"`
	Since time.Time
}

// Is reports whether what answers there is the recorded engine, as far as it can be known.
func (p *Place) Is(engine, id string) bool {
	return p.Engine == engine && (p.ID == "" || id == "" || p.ID == id)
}

// since returns the place with the time of an earlier record of the same one.
func (p *Place) since(before *Place) *Place {
	if p == nil || before == nil || !before.Is(p.Engine, p.ID) {
		return p
	}
	again := *p
	again.Since = before.Since
	return &again
}
