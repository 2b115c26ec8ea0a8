// Command manpages writes the man pages of workshop, section 1, into a directory: one
// for each command, as git has them (workshop-up.1). Their date is SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra/doc"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli"
	"github.com/llmdo/workshop/internal/cli/command"
)

func main() {
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages: error:", err)
		os.Exit(1)
	}
}

func write(dir, version string) error {
	root := cli.NewWorkshop(&command.System{Env: &app.Env{Lookup: func(string) (string, bool) { return "", false }}})
	root.DisableAutoGenTag = true
	cli.Synopsis(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "workshop " + version, Manual: "workshop"}, dir)
}
