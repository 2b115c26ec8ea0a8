// Package kept records what outlives a guard: live denies and spent upload budgets,
// in a file held by the room's PID 1 (package handover). The file may have been
// written by another process: reading is bounded, strict, and fails closed.
package kept
