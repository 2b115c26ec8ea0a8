package engine

// Capabilities are how engines differ on every machine, as data: commands ask these
// and compare no names. What was found on this machine is [Info].
type Capabilities struct {
	// Contained says that workers run in containers. Where they don't, their tools
	// run on this machine, as the caller.
	Contained bool
	// Compose says that plain Compose runs the generated files on it.
	Compose bool
}
