package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/promise"
)

// Ps is the verb ps.
func Ps(p *command.Program) *cobra.Command {
	a := verbs{p}
	strict := false
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the containers of a workshop",
		Long: `ps lists workers, rooms and guard, says which promises are not kept for a worker
and whether its credentials are leased now, and names watched files that changed since
the first ` + "`up`" + ` (see down). With --quiet it prints the container IDs alone.`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return a.ps(ctx, cmd, strict)
		}),
	}
	// Stopped containers are always listed.
	cmd.Flags().BoolP("all", "a", true, "accepted as in Compose")
	_ = cmd.Flags().MarkHidden("all")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit with 4 if a watched file or a mount changed since up, or not all could be checked")
	return cmd
}

func (a verbs) ps(ctx context.Context, cmd *cobra.Command, strict bool) error {
	format, err := a.Format(cmd)
	if err != nil {
		return err
	}
	s, err := a.Status(ctx, a.ProjectGiven())
	if err != nil {
		return err
	}
	if s.Unread != nil && !a.Quiet {
		a.Warn("%v; so the networks and ports of workers are not known: `workshop validate`", s.Unread)
	}
	switch {
	case format == "json":
		err = a.WriteJSON(s.Containers)
	case a.Quiet:
		for _, c := range s.Containers {
			fmt.Fprintln(a.Out, app.Printable(c.ID))
		}
	default:
		err = a.psTable(s.Containers)
		a.psNotes(ctx, s)
		a.psLive(s)
		a.psCredentials(s)
		a.psGained(s)
		for _, down := range app.Stopped(s.Observed, "") {
			a.Say("the %s doesn't run: its workers have no network until `workshop up`", down)
		}
		if stale := app.Stale(s.Observed, ""); len(stale) > 0 {
			a.Say("%s", app.StaleText(stale))
		}
		for _, c := range s.Containers {
			if c.NotCompared {
				a.Say("%s was not compared with what was asked for since its start: `workshop up` does it", app.Printable(c.Service))
			}
		}
	}
	if err != nil {
		return err
	}
	if (a.CompareWatched(ctx, s.Name, s.Observed) || slices.ContainsFunc(s.Containers, app.ContainerStatus.MountsChanged)) && strict {
		return app.Exit(app.CodeRefused)
	}
	return nil
}

// psGained says what the mounts of workers on gVisor gained or lost on the machine.
func (a verbs) psGained(s *app.Status) {
	for _, c := range s.Containers {
		name := app.Printable(c.Service)
		if len(c.ReplacedMounts) > 0 {
			a.Warn("what %s has at %s was replaced, renamed or removed on the host (B3, B8); it takes no command until `workshop up` recreates it", name, app.Printable(clip.Some(c.ReplacedMounts)))
		}
		if len(c.Sockets) > 0 {
			a.Warn("%s can connect to sockets that came into its mounts (B7): %s; remove them, or end it: `workshop down`", name, app.Printable(clip.Some(c.Sockets)))
		}
		if c.SocketsMissed != "" {
			a.Warn("not all mounts of %s were searched for sockets (B7): %s", name, app.Printable(c.SocketsMissed))
		}
	}
}

func (a verbs) psTable(entries []app.ContainerStatus) error {
	w := a.Table()
	// What a flag or a setting gave up isn't in the file, so it has a column.
	waived := slices.ContainsFunc(entries, func(p app.ContainerStatus) bool {
		return slices.Contains(p.NotHeld, "B5") || slices.Contains(p.NotHeld, "B6") || slices.Contains(p.NotHeld, "B13")
	})
	heading := "SERVICE\tROLE\tSTATE\tNETWORK\tENGINE\tPORTS"
	if waived {
		heading += "\tNOT HELD"
	}
	fmt.Fprintln(w, heading)
	for _, p := range entries {
		line := []string{p.Service, p.Role, stateText(p), networkColumn(p), p.Engine, portsColumn(p)}
		if waived {
			line = append(line, promise.Ranges(p.NotHeld))
		}
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

// stateText is "up 5 minutes", "exited (1)".
func stateText(p app.ContainerStatus) string {
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

// portsColumn is the published ports, and that they aren't those of the file.
func portsColumn(p app.ContainerStatus) string {
	ports := p.Ports
	if p.PortsStale && len(ports) > 0 {
		ports = append(slices.Clone(ports), "stale")
	}
	return strings.Join(ports, ", ")
}

// psNotes says what the table has no column for.
func (a verbs) psNotes(ctx context.Context, s *app.Status) {
	if len(s.Containers) == 0 {
		a.Say("project %s is not up", s.Name)
	}
	var open, composed, unlimited, named, emulated, stale, ports []string
	ended := false
	for _, p := range s.Containers {
		if !s.Can.Contained { // of which every command warns
			continue
		}
		if p.WhyEnded != "" {
			a.Warn("%s: %s (`workshop logs %s` names the mount)", p.Service, p.WhyEnded, p.Service)
			ended = true
		}
		if p.Silent {
			a.Warn("%s", &engine.SilentError{Container: p.Name})
		}
		if p.Role == compose.RoleWorker.String() && slices.Contains(p.NotHeld, "B5") {
			unlimited = append(unlimited, p.Service)
		}
		if p.Role == compose.RoleWorker.String() && slices.Contains(p.NotHeld, "B6") {
			named = append(named, p.Service)
		}
		if p.Role == compose.RoleWorker.String() && slices.Contains(p.NotHeld, "B13") {
			emulated = append(emulated, p.Service)
		}
		if p.NetworkStale {
			stale = append(stale, p.Service)
		}
		if p.PortsStale {
			ports = append(ports, p.Service)
		}
		if slices.Contains(p.NotHeld, "B24") && p.LearningUntil == nil {
			open = append(open, p.Service)
		}
		if p.MadeBy == "compose" {
			composed = append(composed, p.Service)
		}
	}
	if ended {
		a.Hint("%s", a.StartHint(ctx, s.ProjectRef))
	}
	if len(stale) > 0 {
		a.Hint("%s", app.StaleModesText(stale, a.Shown(s.File)))
	}
	if len(ports) > 0 {
		a.Hint("the published ports of %s aren't those of %s: `workshop up` applies them", app.WorkersText(ports), a.Shown(s.File))
	}
	if len(open) > 0 {
		a.Say("network: open: %s may reach any public name and address over TCP (B24 and B25 are off)", strings.Join(open, ", "))
	}
	if len(unlimited) > 0 {
		a.Say("without limits: %s may use all memory, CPU and processes of the machine (B5 is off)", strings.Join(unlimited, ", "))
	}
	if len(named) > 0 {
		a.Say("cgroups of version 1 on podman: %s can see the names of their cgroups (a part of B6)", strings.Join(named, ", "))
	}
	if len(emulated) > 0 {
		a.Say("emulated: %s: without KVM a virtual machine is not a boundary (B13 is not held)", strings.Join(emulated, ", "))
	}
	if text := app.UntoldText(s.Observed, ""); text != "" {
		a.Say("%s", text)
	}
	if len(composed) > 0 {
		a.Say("made by Compose from the generated files: %s", strings.Join(composed, ", "))
	}
}

// psLive says what the guard has in addition to the file.
func (a verbs) psLive(s *app.Status) {
	switch {
	case s.Silent:
		a.Say("the guard doesn't answer within %v: live changes and learning aren't known; `workshop up` stops a guard that hangs", app.AskTime)
	case s.Guard == nil:
	default:
		a.SayClosed(*s.Guard)
		for _, u := range s.Guard.Upstreams {
			a.Say("%s", app.UpstreamText(u))
		}
		if n := s.Guard.Panics; n > 0 {
			a.Warn("the guard recovered from %s: `workshop firewall log`", app.Count(int(n), "internal error"))
		}
		if len(s.Guard.Learning) > 0 {
			a.Say("%s", app.LearningText(*s.Guard))
		}
		if len(s.Guard.Live) > 0 {
			a.Say("%s", app.LiveText(*s.Guard))
		}
		if slices.ContainsFunc(s.Guard.Rooms, func(r control.RoomState) bool { return r.Kind == "anyip" }) {
			a.Say("the rooms use AnyIP, as this kernel lacks nf_tables: denials are counted without the uid")
		}
	}
}

// psCredentials says of each credential whether it is leased now. Workers of a room that have
// the same are said once.
func (a verbs) psCredentials(s *app.Status) {
	var all []app.CredentialStatus
	workers := map[app.CredentialStatus][]string{}
	for _, c := range s.Containers {
		for _, x := range c.Credentials {
			if workers[x] == nil {
				all = append(all, x)
			}
			workers[x] = append(workers[x], c.Service)
		}
	}
	broken := false
	for _, x := range all {
		text := app.WorkersText(workers[x]) + ": " + app.Printable(x.Text())
		if x.Problem == "" {
			a.Say("%s", text)
			continue
		}
		a.Warn("%s", text)
		broken = true
	}
	if broken {
		a.Hint("`workshop up` has them leased again, or says what is missing")
	}
}

// networkColumn is the mode, and that the worker learns, its room is closed, or
// the room was restarted without it.
func networkColumn(p app.ContainerStatus) string {
	if p.Stale {
		return p.Network + ", stale"
	}
	if p.Closed != "" {
		return p.Network + ", closed"
	}
	if p.LearningUntil != nil {
		return fmt.Sprintf("%s, learning until %s", p.Network, app.WhenText(*p.LearningUntil))
	}
	return p.Network
}
