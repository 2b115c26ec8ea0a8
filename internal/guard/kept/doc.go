// Package kept is what of a guard's memory outlives it: live denies and spent
// upload budgets, in a file that the room's PID 1 holds (package handover). It
// reads what another process wrote: bounded, strict, and closed on any doubt.
package kept
