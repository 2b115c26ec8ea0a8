package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/workshop"
)

// How long a room learns.
const (
	defaultLearn = 30 * time.Minute
	maxLearn     = 24 * time.Hour
)

// learnOptions are the flags of `up --learn`.
type learnOptions struct {
	on          bool
	lasts       time.Duration
	withSecrets bool
}

func (o *learnOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.on, "learn", false, "let names pass that no line allows, and record them")
	f.DurationVar(&o.lasts, "for", defaultLearn, "with --learn: how long, at most 24h")
	f.BoolVar(&o.withSecrets, "with-secrets", false, "with --learn: although a worker has secrets")
}

// check is about the command line alone.
func (o *learnOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"for", "with-secrets"} {
		if !o.on && cmd.Flags().Changed(name) {
			return usageError(cmd, "--%s belongs to --learn", name)
		}
	}
	if o.lasts < time.Second || o.lasts > maxLearn {
		return usageError(cmd, "--for %v: from a second to %s", o.lasts, lengthText(maxLearn))
	}
	return nil
}

// learners are the rooms that learn, of the named workers or of all, and the
// workers in them.
func learners(w *workshop.Workshop, names []string) (rooms, workers []string) {
	mode := map[string]firewall.Mode{}
	for i := range w.Workers {
		mode[w.Workers[i].Name] = w.Workers[i].Container.Network.Mode.V
	}
	for _, r := range workshop.Rooms(w) {
		asked := len(names) == 0 || slices.ContainsFunc(r.Workers, func(k string) bool { return slices.Contains(names, k) })
		if asked && mode[r.Workers[0]] == firewall.Restricted {
			rooms = append(rooms, r.Name)
			workers = append(workers, r.Workers...)
		}
	}
	return rooms, workers
}

// refuseLearning says why nothing may learn, before anything is started.
func (a *program) refuseLearning(c *app.Project, names []string, o learnOptions) error {
	rooms, workers := learners(c.Workshop, names)
	var reasons []string
	f := &app.Failure{Code: app.CodeRefused}
	if name := a.InCI(); name != "" {
		reasons = append(reasons, fmt.Sprintf("%s=%s: this is continuous integration, where nobody watches what is let through", name, app.Printable(a.Getenv(name))))
		f.Hint("learn on a machine of yours, and commit what `workshop firewall suggest` gives")
	}
	if len(rooms) == 0 {
		reasons = append(reasons, "there is nothing to learn: no worker has a network with mode restricted")
		f.Hint("write `network: {mode: restricted}`; learning then shows what to allow")
	}
	var secret []string
	for _, name := range workers {
		if w := c.Worker(name); len(w.Container.Secrets) > 0 {
			secret = append(secret, name+" ("+secretsText(w.Container.Secrets)+")")
		}
	}
	if len(secret) > 0 && !o.withSecrets {
		reasons = append(reasons, "workers that would learn have secrets, and could send them to any name: "+strings.Join(secret, ", "))
		f.Hint("learn without them, or with ones that are worth nothing; --with-secrets does it all the same")
	}
	if len(reasons) == 0 {
		return nil
	}
	f.Err = fmt.Errorf("--learn is refused: %s", strings.Join(reasons, "\n"))
	return f.Hint("nothing was started")
}

// learn lets the rooms learn, and says loudly what that means.
func (a *program) learn(ctx context.Context, e *app.Running, c *app.Project, names []string, o learnOptions) error {
	rooms, workers := learners(c.Workshop, names)
	var until time.Time
	err := a.WithGuard(ctx, e, func(g *control.Client) error {
		var done control.Applied
		if err := g.Do(control.Request{Op: control.OpLearn, Rooms: rooms, For: control.Duration(o.lasts)}, &done); err != nil {
			return err
		}
		until = time.Now().Add(o.lasts)
		return nil
	})
	if err != nil {
		return err
	}
	a.RememberLearning(c.Name, until)
	a.warnLearning(workers, until)
	return nil
}

// warnLearning says which promises don't hold, and which do.
func (a *program) warnLearning(workers []string, until time.Time) {
	a.warn(`learning until %s (%s): what no line allows is let through, and recorded. For %s these promises don't hold meanwhile:
B23: names that aren't allowed are resolved: a question can carry data to a name server
B24: on ports 80 and 443, every name passes
B25: so it does on other TCP ports
What holds: deny lines; private addresses, this machine, other containers, metadata, loopback and link-local stay closed (B26, B31); resolvers over HTTPS.`,
		app.WhenText(until), lengthText(time.Until(until)), app.WorkersText(workers))
	a.printFailure((&app.Failure{}).
		Hint("%s", app.EndLearning).
		Hint("afterwards: `workshop firewall suggest` makes lines of what was let through"))
}
