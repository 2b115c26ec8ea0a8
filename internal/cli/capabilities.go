package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/engine"
)

// capability is one thing that an engine can or can't enforce.
type capability struct {
	Name    string `json:"name"`
	Promise string `json:"promise"` // of the boundary, see the documentation
	Held    bool   `json:"held"`
	Meaning string `json:"meaning"`
}

// capabilityList is the table that the command and the preflight share.
func capabilityList(i engine.Info) []capability {
	return []capability{
		{"memory", "B5", i.Limits.Memory, "a worker's memory is limited"},
		{"swap", "B5", i.Limits.Swap, "no swap beyond the memory limit"},
		{"cpu", "B5", i.Limits.CPU, "a worker's cpu time is limited"},
		{"pids", "B5", i.Limits.PIDs, "the number of a worker's processes is limited"},
		{"seccomp", "B2", i.Limits.Seccomp, "system calls are filtered"},
		{"live-files", "", i.Local, "the engine sees this machine's files: mounts, secrets and image: host work"},
		{"ipv6", "", i.IPv6, "the engine's kernel has IPv6"},
	}
}

func (a *app) capabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "Show what the engine is and what it can enforce",
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			e, err := a.connect(ctx, nil)
			if err != nil {
				return err
			}
			defer e.Close()
			info, err := e.Info(ctx)
			if err != nil {
				return engineError(err)
			}
			return a.printCapabilities(format, info)
		}),
	}
}

func (a *app) printCapabilities(format string, i engine.Info) error {
	list := capabilityList(i)
	if format == "json" {
		return a.writeJSON(struct {
			Engine       string       `json:"engine"`
			Endpoint     string       `json:"endpoint"`
			Version      string       `json:"version"`
			APIVersion   string       `json:"api_version"`
			Platform     string       `json:"platform"`
			Runtimes     []string     `json:"runtimes"`
			Capabilities []capability `json:"capabilities"`
		}{i.Kind, i.Endpoint, i.Version, i.APIVersion, i.OS + "/" + i.Arch, i.Runtimes, list})
	}
	fmt.Fprintf(a.Out, "%s %s (API %s) at %s, %s/%s, runtimes: %s\n",
		i.Kind, i.Version, i.APIVersion, i.Endpoint, i.OS, i.Arch, strings.Join(i.Runtimes, ", "))
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "CAPABILITY\tPROMISE\tHELD\tMEANING")
	for _, c := range list {
		held := "yes"
		if !c.Held {
			held = "no"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Promise, held, c.Meaning)
	}
	return w.Flush()
}
