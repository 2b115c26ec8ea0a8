//go:build linux

// Command intruder is `workshop-init probe` with the tries of package intrude,
// built by the tests and never part of what is shipped.
package main

import (
	"os"

	"github.com/llmdo/workshop/internal/threat/intrude"
)

func main() { os.Exit(intrude.Main(os.Args[1:], os.Stdout, os.Stderr)) }
