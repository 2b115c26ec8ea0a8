package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/cli/command"
)

// linkedVersion is set by the linker in releases:
// -X github.com/llmdo/workshop/internal/cli.linkedVersion=v1.2.3
var linkedVersion string

// addVersionFlag adds --version to a root. Cobra's own prints by text/template,
// which calls methods by their names: with it the linker keeps every exported
// method of the program, 3 MB of it.
func addVersionFlag(root *cobra.Command, sys *command.System) {
	short := "v"
	if root.Flags().ShorthandLookup(short) != nil {
		short = "" // it is --verbose
	}
	shown := root.Flags().BoolP("version", short, false, "version for "+root.Name())
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		if !*shown {
			return nil
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), root.Name(), sys.BuildVersion()); err != nil {
			return err
		}
		return errVersionShown
	}
}

// errVersionShown ends a command line with --version: no command is run.
var errVersionShown = errors.New("the version was shown")

// versionInfo is the result of the command.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version of this program",
		Annotations: command.Formats("text", "json"),
		RunE: p.Run(func(_ context.Context, cmd *cobra.Command, _ []string) error {
			format, err := p.Format(cmd)
			if err != nil {
				return err
			}
			v := readVersion(p.System)
			if format == "json" {
				return p.WriteJSON(v)
			}
			fmt.Fprintf(p.Out, "workshop %s %s %s\n", v.Version, v.Go, v.Platform)
			return nil
		}),
	}
}

func readVersion(sys *command.System) versionInfo {
	v := versionInfo{Version: sys.BuildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
