//go:build linux

// Command intruder is `workshop-init probe` with the tries of package attacks,
// built by the tests and never part of what is shipped.
package main

import (
	"os"

	"github.com/llmdo/workshop/internal/dev/threat/attacks"
)

func main() { os.Exit(attacks.Main(os.Args[1:], os.Stdout, os.Stderr)) }
