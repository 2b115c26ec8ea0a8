package proxy

import (
	"errors"
	"sort"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Budgets count what a room sends by the rules that have a budget, through all
// sessions of the room and all policies. The zero value is ready for use.
//
// Bytes are those of TCP payload, counted before they are written to the
// upstream: nothing above the budget leaves. What comes back isn't bounded.
type Budgets struct {
	mu  sync.Mutex
	all map[budgetKey]*budget
}

// budgetKey makes a rule the same through all policies.
type budgetKey struct {
	target, ports string
	upload        firewall.Budget
}

func keyOf(r *firewall.Rule) budgetKey {
	if r == nil || r.Upload.IsZero() {
		return budgetKey{}
	}
	return budgetKey{r.Target(), firewall.FormatPorts(r.Ports), r.Upload}
}

// began is what windows count from: the monotonic clock, so that nobody who sets
// the time gives a budget back.
var began = time.Now()

// of returns the budget of a rule, nil if it has none.
func (b *Budgets) of(r *firewall.Rule) *budget {
	k := keyOf(r)
	if k.upload.IsZero() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.all[k]
	if x != nil {
		return x
	}
	if b.all == nil {
		b.all = map[budgetKey]*budget{}
	}
	x = &budget{key: k, window: window{limit: k.upload.Bytes, per: k.upload.Per}}
	b.all[k] = x
	return x
}

// admit refuses what a rule allows whose budget is used up.
func (b *Budgets) admit(d firewall.Decision) firewall.Decision {
	if x := b.of(d.Rule); x != nil && x.wait() > 0 {
		return firewall.Decision{Rule: d.Rule, Reason: events.ReasonUpload}
	}
	return d
}

// State tells how much of each budget of a policy is used.
func (b *Budgets) State(p *policy.Room) []control.BudgetState {
	var out []control.BudgetState
	for i := range p.Allow {
		r := &p.Allow[i]
		if x := b.of(r); x != nil {
			out = append(out, control.BudgetState{Target: r.Target(), Line: r.Line, Upload: r.Upload, Used: x.used()})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Target < out[j].Target })
	return out
}

// budget is that of one rule, which all its connections share.
type budget struct {
	key budgetKey

	mu     sync.Mutex
	window window
	open   map[*way]struct{}
}

func (b *budget) take(n int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.window.take(time.Since(began), int64(n)))
}

// wait is how long nothing can be sent; 0: something can.
func (b *budget) wait() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.window.free(time.Since(began))
}

func (b *budget) used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.window.advance(time.Since(began))
	return b.window.used
}

func (b *budget) add(w *way) {
	b.mu.Lock()
	if b.open == nil {
		b.open = map[*way]struct{}{}
	}
	b.open[w] = struct{}{}
	b.mu.Unlock()
}

func (b *budget) remove(w *way) {
	b.mu.Lock()
	delete(b.open, w)
	b.mu.Unlock()
}

func (b *budget) ways() (out []*way) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for w := range b.open {
		out = append(out, w)
	}
	return out
}

// errUsedUp ends the connection that wanted to send more than its budget has.
var errUsedUp = errors.New("the upload budget is used up")
