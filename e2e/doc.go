// Package e2e shows the promises of the boundary on a real engine: one test per
// promise and attack. README.md says how they are run and what they must not
// do; package scenario is their frame, breaks proves that each of them can fail.
package e2e
