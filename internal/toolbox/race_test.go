//go:build race

package toolbox

// The race detector reads its options from /proc/self/environ, which a program
// that can't be read doesn't have: then it would sleep a second at its end, and
// tell nobody of its races.
func init() { initMode = 0o755 }
