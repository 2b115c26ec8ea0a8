package approval

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/llmdo/workshop/internal/callrule"
	"github.com/llmdo/workshop/tool"
	"github.com/llmdo/workshop/workshop"
)

// Gate joins policy, asker and what was answered. It is safe for use by
// several goroutines; questions are asked one after the other. Its fields may
// not change once it is used.
type Gate struct {
	Policy Policy
	Asker  Asker // nil: nobody to ask
	// Remember writes a rule down for always; nil: always isn't offered.
	Remember Remember
	// Settings and File are the paths of the user's config.yaml and of the workshop.yaml,
	// for hints.
	Settings, File string
	// OneCall says that the session is one call of a command line.
	OneCall bool

	mu       sync.Mutex
	turn     chan struct{} // who holds its one element may ask
	answered []answered
}

// answered is a rule that a person said session or always to. It holds for
// calls that are asked about for the same reason: another rule that asks has
// not been answered.
type answered struct {
	rule   callrule.Rule
	worker string // any, where it was always
	why    string
	answer Answer
}

// Allow returns nil with the verdict where the call may run, else a
// [RefusedError] with it. Before a person is asked, possible may return an error
// of its own for a call that can't succeed; nil: nobody knows.
func (g *Gate) Allow(ctx context.Context, c Call, possible func(context.Context) error) (Verdict, error) {
	v := g.Policy.Decide(c)
	switch {
	case v.Decision == workshop.ApprovalAuto:
		return v, nil
	case v.Decision == workshop.ApprovalDeny:
		return v, g.denied(ctx, c, v)
	case g.recall(c, &v):
		return v, nil
	}
	if possible != nil {
		if err := possible(ctx); err != nil {
			return v, err
		}
	}
	if g.Asker == nil {
		return v, g.unanswered(ctx, c, v)
	}
	turn := g.turns()
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return v, notAnswered(c, "nobody answered in time", context.Cause(ctx))
	}
	if g.recall(c, &v) { // answered while this one waited
		return v, nil
	}
	return g.ask(ctx, c, v)
}

// turns has room for one.
func (g *Gate) turns() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn == nil {
		g.turn = make(chan struct{}, 1)
	}
	return g.turn
}

func (g *Gate) ask(ctx context.Context, c Call, v Verdict) (Verdict, error) {
	text, cut := textOf(c)
	q := Question{Call: c, Why: v.Why, Text: text, OneCall: g.OneCall}
	if !v.unsure && !(cut && c.Tool == tool.Shell) {
		q.Rule = g.offered(c, v)
	}
	before := v.rule
	if q.Rule != nil && g.Remember != nil {
		change, err := g.Remember.Preview(ctx, *q.Rule, before)
		if err == nil {
			q.Change = change
		}
	}
	if err := ctx.Err(); err != nil {
		return v, notAnswered(c, "nobody answered in time", context.Cause(ctx))
	}
	answer, err := g.Asker.Ask(ctx, q)
	var unclear *AskError
	switch {
	case errors.Is(err, ErrClosed):
		return v, notAnswered(c, err.Error(), err)
	case errors.As(err, &unclear):
		no := notAnswered(c, unclear.Why, err)
		no.Hint = unclear.Detail
		return v, no
	case err != nil:
		no := notAnswered(c, "nobody could be asked: "+err.Error(), err)
		if ctx.Err() == nil { // else who ended the call doesn't want to know how to allow it
			no.Hint, no.Again = g.howToAllow(context.WithoutCancel(ctx), c, v)
		}
		return v, no
	case answer == No:
		v.Answer = No
		return v, &RefusedError{Call: c, Why: "a person said no", Advice: "tell them what it was for, and call it again only if they ask for it"}
	case !slices.Contains(q.Answers(), answer):
		v.Answer = No
		return v, &RefusedError{Call: c, Why: "the answer " + shown(string(answer)) + " isn't one of those that were offered"}
	}
	v.Answer = answer
	switch answer {
	case Session:
		g.keep(*q.Rule, c.Worker, v)
	case Always:
		// What is written must be what was shown.
		now, err := g.Remember.Preview(ctx, *q.Rule, before)
		if err == nil && now != q.Change {
			err = errChanged
		}
		if err == nil {
			err = g.Remember.Write(ctx, *q.Rule, before)
		}
		if err != nil {
			return v, &RefusedError{Call: c, Why: "the rule can't be written, so that always means nothing: " + err.Error(), Hint: "say once, or session", err: err}
		}
		g.keep(*q.Rule, "", v)
	}
	return v, nil
}

// offered is the rule that a person may agree to. A rule of the file that only
// the cap keeps from counting is offered itself, unless it lets a whole tool
// pass that does anything. For what programs of the host run or obey it is the file
// alone.
func (g *Gate) offered(c Call, v Verdict) *Rule {
	if v.obeyed {
		if match, ok := callrule.SuggestFile(g.Policy.call(c)); ok {
			return &Rule{c.Tool, match}
		}
		return nil
	}
	if v.capped && v.rule != nil {
		if r, err := callrule.Parse(v.rule.Tool, v.rule.Match); err == nil && !r.Wide() {
			return &Rule{v.rule.Tool, v.rule.Match}
		}
	}
	match, ok := callrule.Suggest(g.Policy.call(c))
	if !ok {
		return nil
	}
	return &Rule{c.Tool, match}
}

func (g *Gate) keep(r Rule, worker string, v Verdict) {
	rule, err := callrule.Parse(r.Tool, r.Match)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answered = append(g.answered, answered{rule, worker, v.Why, v.Answer})
}

// recall finds an answer that was given before.
func (g *Gate) recall(c Call, v *Verdict) bool {
	if v.unsure {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.answered {
		if (a.worker == "" || a.worker == c.Worker) && a.why == v.Why && a.rule.Grants(g.Policy.call(c)) {
			v.Answer = a.answer
			return true
		}
	}
	return false
}
