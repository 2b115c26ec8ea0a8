package engine

// Capabilities describe an engine independently of the machine. Commands use them
// instead of comparing engine names. What depends on the machine is in [Info].
type Capabilities struct {
	// Contained: workers run in containers. Otherwise their tools run on this
	// machine, as the caller.
	Contained bool
	// Compose: plain Compose can run the generated files on it.
	Compose bool
}
