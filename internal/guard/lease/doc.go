// Package lease has what the broker on the host and a guard say to each other once the
// broker has attached (control.OpAttach).
//
// A value is the user's secret. The guard has it in memory alone, for [Lasting] after the
// broker has sent it, for the one line that it was sent for; no text that this package makes
// has any of it.
package lease

import "time"

// Lasting is how long a lease lasts after its receipt, unless it is renewed: sent again.
const Lasting = 30 * time.Second

// MaxLine bounds a message, in bytes, with its line end.
const MaxLine = 64 << 10

// MaxValue bounds a value, in bytes.
const MaxValue = 8 << 10
