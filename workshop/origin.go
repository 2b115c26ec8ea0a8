package workshop

// Origin says whose word a value is. What the repository must not open by
// itself, such as an upstream proxy on this machine, needs the user's.
type Origin int

// The origins. The zero Origin is the repository's: trusted least.
const (
	OfFile Origin = iota // workshop.yaml, or the `.env` next to it
	OfUser               // the caller's environment, or a file of --env-file
)

// setting is the value of a variable.
type setting struct {
	text   string
	origin Origin
}

// settings is a lookup of variables.
type settings func(name string) (setting, bool)

// text is the lookup without origins, as libraries ask for it.
func (s settings) text(name string) (string, bool) {
	x, ok := s(name)
	return x.text, ok
}
