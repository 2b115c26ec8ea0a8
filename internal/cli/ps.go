package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/promise"
	"github.com/llmdo/workshop/workshop"
)

// psEntry is one container in the result of ps.
type psEntry struct {
	Name     string     `json:"name"`
	Service  string     `json:"service"`
	Role     string     `json:"role"`
	State    string     `json:"state"`
	ExitCode int        `json:"exit_code"`
	Started  *time.Time `json:"started,omitempty"`
	Image    string     `json:"image"`
	Network  string     `json:"network,omitempty"` // of a worker, by the workshop file
	Ports    []string   `json:"ports"`
	// NotHeld are the promises that don't hold for this worker.
	NotHeld []string `json:"not_held,omitempty"`
	// LearningUntil is when the worker's room stops learning.
	LearningUntil *time.Time `json:"learning_until,omitempty"`
	// Closed says why the worker's room is closed, whatever the file says.
	Closed string `json:"closed,omitempty"`
	// LiveChanges of the policy, which the guard has beside the file.
	LiveChanges int `json:"live_changes,omitempty"`
	// Upstreams of the guard that the policy names.
	Upstreams []control.Upstream `json:"upstreams,omitempty"`
	// Silent says that the engine doesn't answer for it.
	Silent bool   `json:"silent,omitempty"`
	MadeBy string `json:"made_by"`
	Engine string `json:"engine"` // that runs it
	id     string
}

func (a *program) psCommand() *cobra.Command {
	strict := false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the containers of a workshop",
		Long: `ps lists workers, rooms and guard, says which promises don't hold for a worker,
and names watched files that changed since ` + "`up`" + ` (see down). With --quiet it
prints the container IDs alone.`,
		RunE: a.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.ps(ctx, cmd, strict)
		}),
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 4 if a watched file changed since up, or not all could be checked")
	return cmd
}

func (a *program) ps(ctx context.Context, cmd *cobra.Command, strict bool) error {
	format, err := a.formatOf(cmd)
	if err != nil {
		return err
	}
	t, err := a.Find(ctx)
	if err != nil {
		return err
	}
	e, err := a.Connect(ctx, t, nil)
	if err != nil {
		return err
	}
	defer e.Close()
	guard := app.Asked(nil)
	if !a.Quiet {
		guard = e.AskGuard(ctx) // beside the rest: 40 ms
	}
	seen, err := e.Look(ctx, a.globals.project != "")
	if err != nil {
		return err
	}
	entries := psEntries(seen, a.quietWorkshop(ctx, t))
	for i := range entries {
		entries[i].Engine = e.Chosen.Name
		if !e.Capabilities().Contained && entries[i].Role == "worker" {
			entries[i].Network, entries[i].NotHeld = "this machine's", promise.Waived(e.Chosen.Name)
		}
	}
	said := addLive(entries, guard)
	switch {
	case format == "json":
		err = a.writeJSON(entries)
	case a.Quiet:
		for _, p := range entries {
			fmt.Fprintln(a.Out, p.id)
		}
	default:
		err = a.psTable(entries)
		a.psNotes(t, entries, e.Capabilities())
		a.psLive(said)
		for _, down := range app.Stopped(seen, "") {
			a.say("the %s doesn't run: its workers have no network until `workshop up`", down)
		}
	}
	if err != nil {
		return err
	}
	if a.CompareWatched(ctx, t.Name, seen) && strict {
		return app.Exit(app.CodeRefused)
	}
	return nil
}

// quietWorkshop reads the workshop for what the engine doesn't know; nil where
// it can't be read: ps is about what runs.
func (a *program) quietWorkshop(ctx context.Context, t app.ProjectRef) *workshop.Workshop {
	if t.File == "" {
		return nil
	}
	s, err := a.Read(ctx, t.File)
	if err != nil {
		return nil
	}
	return s.Workshop
}

func psEntries(seen engine.Observed, w *workshop.Workshop) []psEntry {
	entries := []psEntry{}
	for _, c := range seen.Containers {
		p := psEntry{
			Name: c.Name, Service: c.Service, Role: c.Role, State: c.State, ExitCode: c.ExitCode,
			Image: c.Image, Ports: c.Ports, MadeBy: "workshop", Silent: c.Silent, id: c.ID,
		}
		if !c.Started.IsZero() {
			started := c.Started.UTC()
			p.Started = &started
		}
		if c.ByCompose {
			p.MadeBy = "compose"
		}
		if p.Ports == nil {
			p.Ports = []string{}
		}
		if w != nil {
			for _, worker := range w.Workers {
				if worker.Name == c.Service {
					p.Network = worker.Container.Network.Mode.V.String()
					p.NotHeld = notHeld(worker.Container.Network.Mode.V)
				}
			}
		}
		p.NotHeld = append(slices.Clone(c.NotHeld), p.NotHeld...)
		entries = append(entries, p)
	}
	if w != nil {
		givePorts(entries, w)
	}
	order := map[string]int{"worker": 0, "room": 1, "guard": 2}
	slices.SortStableFunc(entries, func(x, y psEntry) int {
		return cmp.Or(cmp.Compare(order[x.Role], order[y.Role]), cmp.Compare(x.Name, y.Name))
	})
	return entries
}

// givePorts shows published ports where they lead. The guard publishes them, at
// ports of its own that mean nothing to a reader.
func givePorts(entries []psEntry, w *workshop.Workshop) {
	guard := slices.IndexFunc(entries, func(p psEntry) bool { return p.Role == "guard" })
	if guard < 0 {
		return
	}
	for i := range entries {
		worker := slices.IndexFunc(w.Workers, func(k workshop.Worker) bool { return k.Name == entries[i].Service })
		if worker < 0 {
			continue
		}
		for _, port := range w.Workers[worker].Container.Ports {
			entries[guard].Ports = slices.DeleteFunc(entries[guard].Ports, func(at string) bool {
				published, _, _ := strings.Cut(at, "->")
				if !strings.HasSuffix(published, fmt.Sprintf(":%d", port.Published.V)) {
					return false
				}
				entries[i].Ports = append(entries[i].Ports, fmt.Sprintf("%s->%d/tcp", published, port.Target.V))
				return true
			})
		}
	}
}

// notHeld are the promises that a network mode gives up.
func notHeld(mode firewall.Mode) []string {
	if mode == firewall.Open {
		return []string{"B24", "B25"}
	}
	return nil
}

func (a *program) psTable(entries []psEntry) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 3, ' ', 0)
	// What was given up by a flag doesn't stand in the file, so it has a column.
	unlimited := slices.ContainsFunc(entries, func(p psEntry) bool { return slices.Contains(p.NotHeld, "B5") })
	heading := "SERVICE\tROLE\tSTATE\tNETWORK\tENGINE\tPORTS"
	if unlimited {
		heading += "\tNOT HELD"
	}
	fmt.Fprintln(w, heading)
	for _, p := range entries {
		line := []string{p.Service, p.Role, stateText(p), networkColumn(p), p.Engine, strings.Join(p.Ports, ", ")}
		if unlimited {
			line = append(line, promise.Ranges(p.NotHeld))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// stateText is "up 5 minutes", "exited (1)".
func stateText(p psEntry) string {
	switch {
	case p.Silent:
		return p.State + ", no answer"
	case p.State == "running" && p.Started != nil:
		return "up " + strings.ToLower(units.HumanDuration(time.Since(*p.Started)))
	case p.State == "exited":
		return fmt.Sprintf("exited (%d)", p.ExitCode)
	}
	return p.State
}

// psNotes says what the table has no column for.
func (a *program) psNotes(t app.ProjectRef, entries []psEntry, can engine.Capabilities) {
	if len(entries) == 0 {
		a.say("project %s is not up", t.Name)
	}
	var open, composed, unlimited []string
	for _, p := range entries {
		if !can.Contained { // of which every command warns
			continue
		}
		if p.Silent {
			a.warn("%s", &engine.SilentError{Container: p.Name})
		}
		if p.Role == "worker" && slices.Contains(p.NotHeld, "B5") {
			unlimited = append(unlimited, p.Service)
		}
		if slices.Contains(p.NotHeld, "B24") && p.LearningUntil == nil {
			open = append(open, p.Service)
		}
		if p.MadeBy == "compose" {
			composed = append(composed, p.Service)
		}
	}
	if len(open) > 0 {
		a.say("network: open: B24 and B25 don't hold for %s: any public name and address is reached over TCP", strings.Join(open, ", "))
	}
	if len(unlimited) > 0 {
		a.say("without limits: B5 doesn't hold for %s: memory, cpu and processes of the whole machine are theirs", strings.Join(unlimited, ", "))
	}
	if len(composed) > 0 {
		a.say("made by Compose from the generated files: %s", strings.Join(composed, ", "))
	}
}
