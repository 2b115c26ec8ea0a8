// Package tooldoc makes docs/tools.md of what clients are told: the
// descriptions and schemas of package tool, with their limits. What no schema
// says (which errors a tool has, how a call looks) stands here, and tests
// compare it.
package tooldoc

//go:generate go run ../docgen ../../../docs/tools.md
