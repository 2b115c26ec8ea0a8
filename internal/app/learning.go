package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/grant"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/lib/durationtext"
	"github.com/llmdo/workshop/workshop"
)

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

// RefuseLearning says why the named workers, or all, may not learn, before anything is
// started. withSecrets: they may although they have secrets.
func (env *Env) RefuseLearning(c *Project, names []string, withSecrets bool) error {
	rooms, workers := learners(c.Workshop, names)
	var reasons []string
	f := &Failure{Code: CodeRefused}
	if name := env.inCI(); name != "" {
		reasons = append(reasons, fmt.Sprintf("%s=%s: this is continuous integration, where nobody reviews what is let through", name, Printable(env.Getenv(name))))
		f.Hint("learn on your own machine, and commit what `workshop firewall suggest` prints")
	}
	if len(rooms) == 0 {
		reasons = append(reasons, "there is nothing to learn: no worker has a network with mode restricted")
		f.Hint("write `mode: restricted` below `network:`; learning then shows what to allow")
	}
	var secret, own []string
	for _, name := range workers {
		w := c.Worker(name)
		if len(w.Container.Secrets) > 0 {
			secret = append(secret, name+" ("+grant.SecretsText(w.Container.Secrets)+")")
		}
		if w.Container.Kernel.V.Own() {
			own = append(own, name)
		}
	}
	if len(own) > 0 {
		reasons = append(reasons, "learning opens every port, and to a worker with a kernel of its own only a list of ports is carried (B28): "+strings.Join(own, ", "))
		f.Hint("learn with `kernel: host`, or see what was refused: `workshop firewall suggest`")
	}
	if len(secret) > 0 && !withSecrets {
		reasons = append(reasons, "workers that would learn have secrets, and could send them to any name: "+strings.Join(secret, ", "))
		f.Hint("learn without them or with dummy credentials, or add --with-secrets")
	}
	if with := credentialed(c, workers); len(with) > 0 {
		reasons = append(reasons, "workers that would learn have lines with your credentials, and could send what they read by them to any name: "+strings.Join(with, ", "))
		f.Hint("learn without `credential` in the lines")
	}
	settings, err := env.SourceSettings()
	if err != nil {
		return err
	}
	for _, said := range settings.Boundaries() {
		reasons = append(reasons, fmt.Sprintf("%s sets the boundary %s, which nothing would be held to that is let through", said.File, said.Boundary))
	}
	if len(reasons) == 0 {
		return nil
	}
	f.Err = fmt.Errorf("--learn is refused: %s", strings.Join(reasons, "\n"))
	return f.Hint("nothing was started")
}

// credentialed are those of the workers that have a line with a credential.
func credentialed(c *Project, workers []string) (out []string) {
	for _, name := range workers {
		if slices.ContainsFunc(c.Worker(name).Container.Network.Allow, func(r firewall.Rule) bool { return r.Endpoint.Credential != "" }) {
			out = append(out, name)
		}
	}
	return out
}

// Learn lets the rooms of the named workers, or all, learn for a time, and says loudly
// what that means.
func (env *Env) Learn(ctx context.Context, r *Running, c *Project, names []string, lasts time.Duration) error {
	rooms, workers := learners(c.Workshop, names)
	var until time.Time
	err := env.withGuard(ctx, r, func(g *control.Client) error {
		var done control.Applied
		if err := g.Do(control.Request{Op: control.OpLearn, Rooms: rooms, For: control.Duration(lasts)}, &done); err != nil {
			return err
		}
		until = time.Now().Add(lasts)
		return nil
	})
	if err != nil {
		return err
	}
	env.rememberLearning(c.Name, until)
	env.warnLearning(workers, until)
	return nil
}

// warnLearning says what is not enforced while rooms learn, and what is.
func (env *Env) warnLearning(workers []string, until time.Time) {
	env.warn(`learning until %s (%s): what no line allows is let through, and recorded. For %s, until then:
names that aren't allowed are resolved: a query can carry data to a name server (B23)
every name passes on ports 80 and 443 (B24), and on other TCP ports (B25)
Still enforced: deny lines; private addresses, this machine, other containers, metadata, loopback and link-local stay closed (B26, B31); resolvers over HTTPS.`,
		WhenText(until), durationtext.Of(time.Until(until).Round(time.Second)), WorkersText(workers))
	env.hint("%s", endLearning)
	env.hint("afterwards: `workshop firewall suggest` makes lines of what was let through")
}

// AskTime bounds a look at the guard that is only for display.
const AskTime = time.Second

// Asked is what a guard said; nil where it doesn't answer in time.
type Asked <-chan *control.State

// AskGuard asks the guard for its state, in the background; see [AskTime].
func (r *Running) AskGuard(ctx context.Context) Asked { return r.askGuard(ctx, AskTime) }

func (r *Running) askGuard(ctx context.Context, patience time.Duration) Asked {
	answer := make(chan *control.State, 1)
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := r.Control(ctx, r.Name, r.Dir)
		if err != nil {
			return
		}
		c := control.NewClient(conn)
		defer c.Close()
		if s, err := guardState(c); err == nil {
			answer <- &s
		}
	}()
	return answer
}

// learningFile says until when a project learns, by the last `up --learn` of
// this user. It only spares every exec the question to the guard: what counts
// is what the guard says. "" without a home directory.
func (env *Env) learningFile(project string) string {
	dir := env.StateDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, project+".learning")
}

func (env *Env) rememberLearning(project string, until time.Time) {
	if file := env.learningFile(project); file != "" {
		if err := writeState(file, []byte(until.Format(time.RFC3339Nano))); err != nil {
			env.warn("exec and shell won't say that the workshop learns: %v", err)
		}
	}
}

func (env *Env) forgetLearning(project string) {
	if file := env.learningFile(project); file != "" {
		_ = os.Remove(file) // there is none, most often
	}
}

// mayLearn reports whether the guard is worth a question.
func (env *Env) mayLearn(project string) bool {
	file := env.learningFile(project)
	if file == "" {
		return true
	}
	data, err := boundedfile.Read(file, 64)
	if err != nil {
		return false
	}
	until, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(data)))
	if err == nil && time.Now().Before(until) {
		return true
	}
	env.forgetLearning(project)
	return false
}

// GoesOn says after an `up` what the guard, which went on, has in addition to the file.
func (env *Env) GoesOn(s *control.State) {
	if s == nil {
		return
	}
	if len(s.Live) > 0 {
		env.say("%s", LiveText(*s))
	}
	if len(s.Learning) > 0 {
		env.warn("%s", LearningText(*s))
		env.hint("%s", endLearning)
	}
}

// LiveText counts the live changes, and says where they are.
func LiveText(s control.State) string {
	return Count(len(s.Live), "live change") + ": `workshop firewall show`"
}

// endLearning is the one way to end it early.
const endLearning = "to end it early: `workshop firewall reload --reset`, which also drops live changes; a guard that ends learns no more"

// sayLearning says before a command starts in a worker that it learns.
func (env *Env) sayLearning(ctx context.Context, r *Running, worker string) {
	if env.Quiet || !env.mayLearn(r.Name) {
		return
	}
	s := <-r.AskGuard(ctx)
	if s == nil {
		return
	}
	if until, ok := learningOf(*s)[worker]; ok {
		env.say("workshop: learning until %s: the allow list is not enforced for %s (B23–B25)", WhenText(until), worker)
	}
	if len(s.Learning) == 0 {
		env.forgetLearning(r.Name)
	}
}

// learningOf returns for each worker of a learning room until when it learns.
func learningOf(s control.State) map[string]time.Time {
	out := map[string]time.Time{}
	for _, r := range s.Rooms {
		if until, ok := s.Learning[r.Room]; ok {
			for _, w := range r.Workers {
				out[w] = until
			}
		}
	}
	return out
}

// LearningText says in one line who learns, and until when.
func LearningText(s control.State) string {
	by := learningOf(s)
	var workers []string
	var until time.Time
	for w, t := range by {
		workers = append(workers, w)
		if t.After(until) {
			until = t
		}
	}
	slices.Sort(workers)
	return fmt.Sprintf("learning until %s: the allow list is not enforced for %s (B23–B25)", WhenText(until), WorkersText(workers))
}
