// Package leases is the guard's store of the values that the broker on the host has leased
// (package lease): each for the one line that it was sent for, in memory alone, for
// [lease.Lasting] after the broker has sent it.
package leases
