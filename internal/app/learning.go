package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/boundedfile"
	"github.com/llmdo/workshop/internal/guard/control"
)

// AskTime bounds a look at the guard that is only for display.
const AskTime = time.Second

// Asked is what a guard said; nil where it doesn't answer in time.
type Asked <-chan *control.State

// AskGuard asks the guard for its state, beside whatever else goes on.
func (r *Running) AskGuard(ctx context.Context) Asked {
	answer := make(chan *control.State, 1)
	go func() {
		defer close(answer)
		ctx, cancel := context.WithTimeout(ctx, AskTime)
		defer cancel()
		conn, err := r.Control(ctx, r.Name, r.Dir)
		if err != nil {
			return
		}
		c := control.NewClient(conn)
		defer c.Close()
		if s, err := GuardState(c); err == nil {
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

func (env *Env) RememberLearning(project string, until time.Time) {
	if file := env.learningFile(project); file != "" {
		if err := writeState(file, []byte(until.Format(time.RFC3339Nano))); err != nil {
			env.warn("exec and shell won't say that the workshop learns: %v", err)
		}
	}
}

func (env *Env) ForgetLearning(project string) {
	if file := env.learningFile(project); file != "" {
		_ = os.Remove(file) // there is none, most often
	}
}

// mayLearn tells whether the guard is worth a question.
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
	env.ForgetLearning(project)
	return false
}

// StillLearning says after an `up` that the guard, which went on, still learns.
func (env *Env) StillLearning(s *control.State) {
	if s == nil || len(s.Learning) == 0 {
		return
	}
	env.warn("%s", LearningText(*s))
	env.hint("%s", EndLearning)
}

// EndLearning is the one way to end it early.
const EndLearning = "to end it early: `workshop firewall reload --reset`, which also drops live changes; a guard that ends learns no more"

// SayLearning says before a command starts in a worker that it learns.
func (env *Env) SayLearning(ctx context.Context, r *Running, worker string) {
	if env.Quiet || !env.mayLearn(r.Name) {
		return
	}
	s := <-r.AskGuard(ctx)
	if s == nil {
		return
	}
	if until, ok := LearningOf(*s)[worker]; ok {
		env.say("workshop: learning until %s: B23, B24 and B25 don't hold for %s", WhenText(until), worker)
	}
	if len(s.Learning) == 0 {
		env.ForgetLearning(r.Name)
	}
}

// LearningOf gives for each worker of a learning room until when it learns.
func LearningOf(s control.State) map[string]time.Time {
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
	by := LearningOf(s)
	var workers []string
	var until time.Time
	for w, t := range by {
		workers = append(workers, w)
		if t.After(until) {
			until = t
		}
	}
	slices.Sort(workers)
	return fmt.Sprintf("learning until %s: B23, B24 and B25 don't hold for %s", WhenText(until), WorkersText(workers))
}
