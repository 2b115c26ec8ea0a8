//go:build !race

package testutil

// Race says that the tests run with the race detector, which multiplies what
// memory is used.
const Race = false
