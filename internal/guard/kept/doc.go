// Package kept records what outlives a guard: spent upload budgets in a file held by the
// room's PID 1, and live denies in a file that the rooms store and that outlives them too
// (package handover). A file may have been written by another process: reading is
// bounded, strict, and fails closed.
package kept
