package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/guard/control"
)

// askTime bounds a look at the guard that is only for display.
const askTime = time.Second

// asked is what a guard said; nil where it doesn't answer in time.
type asked <-chan *control.State

// ask asks the guard for its state, beside whatever else goes on.
func ask(ctx context.Context, e engine.Engine, project, dir string) asked {
	answer := make(chan *control.State, 1)
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		conn, err := e.Control(ctx, project, dir)
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
func (a *program) learningFile(project string) string {
	dir := a.stateDir()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, project+".learning")
}

func (a *program) rememberLearning(project string, until time.Time) {
	if file := a.learningFile(project); file != "" {
		if err := writeState(file, []byte(until.Format(time.RFC3339Nano))); err != nil {
			a.warn("exec and shell won't say that the workshop learns: %v", err)
		}
	}
}

func (a *program) forgetLearning(project string) {
	if file := a.learningFile(project); file != "" {
		_ = os.Remove(file) // there is none, most often
	}
}

// mayLearn tells whether the guard is worth a question.
func (a *program) mayLearn(project string) bool {
	file := a.learningFile(project)
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
	a.forgetLearning(project)
	return false
}

// stillLearning says after an `up` that the guard, which went on, still learns.
func (a *program) stillLearning(s *control.State) {
	if s == nil || len(s.Learning) == 0 {
		return
	}
	a.warn("%s", learningText(*s))
	a.printFailure((&app.Failure{}).Hint("%s", endLearning))
}

// endLearning is the one way to end it early.
const endLearning = "to end it early: `workshop firewall reload --reset`, which also drops live changes; a guard that ends learns no more"

// sayLearning says before a command starts in a worker that it learns.
func (a *program) sayLearning(ctx context.Context, e engine.Engine, t target, worker string) {
	if a.set.quiet || !a.mayLearn(t.project) {
		return
	}
	s := <-ask(ctx, e, t.project, t.dir)
	if s == nil {
		return
	}
	if until, ok := learningOf(*s)[worker]; ok {
		a.say("workshop: learning until %s: B23, B24 and B25 don't hold for %s", whenText(until), worker)
	}
	if len(s.Learning) == 0 {
		a.forgetLearning(t.project)
	}
}
