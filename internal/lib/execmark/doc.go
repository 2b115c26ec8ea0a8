// Package execmark finds the process of an engine's exec from inside its
// container, so that it can be sent a signal: engines can start a process in a
// container, but not signal it.
//
// The process carries a random mark in its environment ([Env]). It is the one
// with the mark whose parent is outside of the container's process
// namespace: its children inherit the mark, but have parents inside. A process
// of a program that can't be read, as workshop-init in a worker, hides its
// environment and isn't found.
package execmark

// Env is the variable that holds the mark.
const Env = "WORKSHOP_EXEC"
