// Package ports keeps the leases of host ports that workshops leave open (`published:
// auto`): which number a worker's port has, the same at each `up` of a checkout.
package ports
