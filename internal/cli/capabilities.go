package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/facts"
	"github.com/llmdo/workshop/internal/promise"
)

// capability is one thing that an engine can or can't enforce on this machine.
type capability struct {
	Name    string `json:"name"`
	Promise string `json:"promise"` // of the boundary, see docs/engines.md
	Held    bool   `json:"held"`
	Meaning string `json:"meaning"`
	Do      string `json:"do,omitempty"`
	rooms   bool   // it matters to workers with a room alone
}

// promised is one promise as it stands with an engine on this machine.
type promised struct {
	Promise string   `json:"promise"`
	Title   string   `json:"title"`
	Held    bool     `json:"held"`
	How     string   `json:"how"` // or why not
	Do      []string `json:"do,omitempty"`
}

// capabilityList is what was found on this machine: the table that the command
// and the preflight share.
func capabilityList(i engine.Info) []capability {
	list := []capability{
		{Name: "memory", Promise: "B5", Held: i.Limits.Memory, Meaning: "a worker's memory is limited"},
		{Name: "swap", Promise: "B5", Held: i.Limits.Swap, Meaning: "no swap beyond the memory limit"},
		{Name: "cpu", Promise: "B5", Held: i.Limits.CPU, Meaning: "a worker's cpu time is limited"},
		{Name: "pids", Promise: "B5", Held: i.Limits.PIDs, Meaning: "the number of a worker's processes is limited"},
		{Name: "seccomp", Promise: "B2", Held: i.Limits.Seccomp, Meaning: "system calls are filtered"},
	}
	if i.Kind == promise.Process {
		list = nil // it promises none of them
	}
	for _, f := range i.Findings {
		// What an engine says of a limit is more than that it isn't there.
		if at := slices.IndexFunc(list, func(c capability) bool { return c.Name == f.Name }); at >= 0 {
			list[at].Held, list[at].Do = list[at].Held && f.Held, f.Do
			if !f.Held {
				list[at].Meaning = f.Meaning
			}
			continue
		}
		list = append(list, capability{f.Name, f.Promise, f.Held, f.Meaning, f.Do, f.Rooms})
	}
	return append(list,
		capability{Name: "live-files", Held: i.Local, Meaning: "the engine sees this machine's files: mounts, secrets and image: host work"},
		capability{Name: "ipv6", Held: i.IPv6, Meaning: "the engine's kernel has IPv6"})
}

// promisedList says of each promise whether it holds here, and by what.
func promisedList(i engine.Info) []promised {
	var out []promised
	for _, p := range promise.All() {
		kept := promise.Of(i.Kind, p.ID)
		x := promised{Promise: p.ID, Title: p.Title, Held: kept.Held, How: kept.How}
		var lacking []string
		for _, c := range capabilityList(i) {
			if c.Promise == p.ID && !c.Held && kept.Held {
				lacking = append(lacking, c.Name+": "+c.Meaning)
				if c.Do != "" && !slices.Contains(x.Do, c.Do) {
					x.Do = append(x.Do, c.Do)
				}
			}
		}
		if len(lacking) > 0 {
			x.Held, x.How = false, "not on this machine: "+strings.Join(lacking, "; ")
		}
		out = append(out, x)
	}
	return out
}

func (a *program) capabilitiesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "capabilities",
		Short: "Show which promises the engine keeps on this machine",
		Long: `capabilities lists the promises of the boundary, says of each whether the engine
keeps it on this machine, and by what or why not; then what else was found. A
workshop is refused, before anything starts, where one isn't kept. Without
--engine it is about the engine that ` + "`up`" + ` would choose here.`,
		Example: `  workshop capabilities
  workshop capabilities --engine namespace
  workshop capabilities --format json`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.formatOf(cmd)
			if err != nil {
				return err
			}
			if _, err := a.findFile(); err == nil {
				if _, err := a.target(ctx); err != nil { // for the file's isolation
					return err
				}
			}
			a.globals.forceProcess = true // nothing is started
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

func (a *program) printCapabilities(format string, i engine.Info) error {
	list, promises := append(capabilityList(i), a.bareRepositories()), promisedList(i)
	if format == "json" {
		return a.writeJSON(struct {
			Engine       string       `json:"engine"`
			Why          string       `json:"why,omitempty"` // it was chosen
			Endpoint     string       `json:"endpoint"`
			Version      string       `json:"version"`
			APIVersion   string       `json:"api_version"`
			Platform     string       `json:"platform"`
			Runtimes     []string     `json:"runtimes"`
			Promises     []promised   `json:"promises"`
			Capabilities []capability `json:"capabilities"`
		}{i.Kind, a.chosen.why, i.Endpoint, i.Version, i.APIVersion, i.OS + "/" + i.Arch, i.Runtimes, promises, list})
	}
	fmt.Fprintln(a.Out, engineLine(i))
	if a.chosen.why != "" {
		fmt.Fprintf(a.Out, "chosen because %s\n", a.chosen.why)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "\nPROMISE\tHELD\tWHAT\tBY")
	for _, p := range promises {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Promise, heldWord(p.Held), p.Title, p.How)
	}
	fmt.Fprintln(w, "\nFOUND\tHELD\tFOR\tMEANING")
	for _, c := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, heldWord(c.Held), c.Promise, c.Meaning)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var said []string
	for _, c := range list {
		if !c.Held && c.Do != "" && !slices.Contains(said, c.Do) {
			said = append(said, c.Do)
			fmt.Fprintf(a.Out, "hint: %s: %s\n", c.Name, c.Do)
		}
	}
	return nil
}

// bareRepositories reports whether git on this machine leaves bare repositories
// alone that it finds: a worker can make one wherever it may write, and what its
// configuration names runs at the next `git status` there (B8).
func (a *program) bareRepositories() capability {
	return capability{
		Name: "git", Held: facts.GitRefusesBare(a.Home, a.Lookup), Meaning: "git takes no directory for a repository but .git, or by --git-dir (safe.bareRepository)",
		Do: "git config --global safe.bareRepository explicit",
	}
}

// engineLine is what an engine is, in one line.
func engineLine(i engine.Info) string {
	line := i.Kind + " " + i.Version
	if i.APIVersion != "" {
		line += " (API " + i.APIVersion + ")"
	}
	if i.Endpoint != "" {
		line += " at " + i.Endpoint
	}
	line += ", " + i.OS + "/" + i.Arch
	if len(i.Runtimes) > 0 {
		line += ", runtimes: " + strings.Join(i.Runtimes, ", ")
	}
	return line
}

func heldWord(held bool) string {
	if held {
		return "yes"
	}
	return "no"
}
