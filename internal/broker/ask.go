package broker

import (
	"context"
	"fmt"

	"github.com/llmdo/workshop/internal/guard/lease"
)

// maxAsked bounds the questions that wait, of all rooms of a workshop: a guard that somebody
// took over could ask without end.
const maxAsked = 8

// asking is a question of the guard's that wasn't answered yet.
type asking struct{ cancel context.CancelFunc }

// ask has the user asked about a push, where their file says so, and answers the guard. All
// but a yes in time is a refusal.
func (r *loop) ask(m *lease.Ask) {
	_, ok := r.core.asks(m.Line)
	switch {
	case r.asked[m.ID] != nil:
		return
	case !ok || len(r.asked) >= maxAsked:
		r.answerAsk(m, lease.Unanswered, nil)
		return
	case r.Ask == nil:
		r.answerAsk(m, lease.Nobody, nil)
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, lease.AskTime, fmt.Errorf("no answer within %s", lease.AskTime))
	q := &asking{cancel}
	r.asked[m.ID] = q
	go func() {
		defer cancel()
		answer, err := lease.Unanswered, error(nil)
		select {
		case r.turn <- struct{}{}:
			answer, err = r.Ask(ctx, m)
			<-r.turn
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			answer = lease.Unanswered
		}
		r.do(func() {
			if r.asked[m.ID] == q {
				delete(r.asked, m.ID)
				r.answerAsk(m, answer, err)
			}
		})
	}()
}

// answerAsk answers the guard, and logs what was decided.
func (r *loop) answerAsk(m *lease.Ask, answer lease.Decided, err error) {
	if err != nil {
		r.Log.Printf("a push to %q of %s with the credential %s: %s: %v", m.Repository, m.Host, m.Credential, answer, err)
	} else {
		r.Log.Printf("a push to %q of %s with the credential %s: %s", m.Repository, m.Host, m.Credential, answer)
	}
	r.send([]any{&lease.Answer{ID: m.ID, Answer: answer}})
}

// endAsk ends a question for whose answer nobody waits.
func (r *loop) endAsk(id uint64) {
	if q := r.asked[id]; q != nil {
		q.cancel()
		delete(r.asked, id)
	}
}

// endAsks ends all.
func (r *loop) endAsks() {
	for id := range r.asked {
		r.endAsk(id)
	}
}
