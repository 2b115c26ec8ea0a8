package proxy

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/clock"
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/events"
	"github.com/llmdo/workshop/internal/guard/kept"
	"github.com/llmdo/workshop/internal/guard/policy"
	"github.com/llmdo/workshop/internal/lib/sortfunc"
)

// Budgets counts the bytes that a room sends under rules with a budget, across all
// sessions of the room and all policies. The zero value is ready for use.
//
// Bytes are those of TCP payload, counted before they are written to the
// upstream: nothing above the budget leaves. Downloads aren't bounded.
type Budgets struct {
	// Record stores spent bytes before they are sent, so that they outlive the
	// guard; nil stores nothing. After an error nothing is sent.
	Record func([]kept.Spent) error

	mu  sync.Mutex // of all windows, too
	all map[budgetKey]*budget
}

// budgetKey identifies a rule across policies and guards.
type budgetKey struct {
	rule   string // digest of target and ports
	upload firewall.Budget
}

func keyOf(r *firewall.Rule) budgetKey {
	if r == nil || r.Upload.IsZero() {
		return budgetKey{}
	}
	sum := sha256.Sum256([]byte(r.Target() + " " + firewall.FormatPorts(r.Ports)))
	return budgetKey{base64.RawURLEncoding.EncodeToString(sum[:16]), r.Upload}
}

// of returns the budget of a rule, nil if it has none.
func (b *Budgets) of(r *firewall.Rule) *budget {
	k := keyOf(r)
	if k.upload.IsZero() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.get(k)
}

// get is of for a key; b.mu is held.
func (b *Budgets) get(k budgetKey) *budget {
	x := b.all[k]
	if x != nil {
		return x
	}
	if b.all == nil {
		b.all = map[budgetKey]*budget{}
	}
	x = &budget{all: b, key: k, window: newWindow(k.upload)}
	b.all[k] = x
	return x
}

// Admit refuses a connection allowed by a rule whose budget is used up. It takes
// nothing from the budget.
func (b *Budgets) Admit(d firewall.Decision) firewall.Decision {
	if !d.Allowed {
		return d
	}
	if x := b.of(d.Rule); x != nil && x.wait() > 0 {
		return firewall.Decision{Rule: d.Rule, Reason: events.ReasonUpload}
	}
	return d
}

// State returns how much of each budget of a policy is used.
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

// Restore sets the spent bytes to those that the previous guard recorded.
func (b *Budgets) Restore(spent []kept.Spent) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := clock.Boot()
	for _, s := range spent {
		w := newWindow(s.Upload)
		if err := w.restore(now, s.At, s.Sent); err != nil {
			return fmt.Errorf("budget of %s: %w", s.Upload, err)
		}
		b.get(budgetKey{s.Rule, s.Upload}).window = w
	}
	return nil
}

// Reset clears the spent bytes.
func (b *Budgets) Reset() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, x := range b.all {
		x.window = newWindow(x.key.upload)
	}
	return b.record(clock.Boot())
}

// Fits refuses a policy with more budgets than a room can record, counting those
// already spent unless they are reset.
func (b *Budgets) Fits(p *firewall.RoomPolicy, reset bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	keys := map[budgetKey]bool{}
	if !reset {
		for _, s := range b.spent(clock.Boot()) {
			keys[budgetKey{s.Rule, s.Upload}] = true
		}
	}
	for i := range p.Allow {
		if k := keyOf(&p.Allow[i]); !k.upload.IsZero() {
			keys[k] = true
		}
	}
	if n := len(keys); n > firewall.MaxBudgets {
		return fmt.Errorf("room %q: %d upload budgets, including partly spent ones of earlier policies, at most %d are possible: `workshop firewall reload --reset` clears what is spent", p.Room, n, firewall.MaxBudgets)
	}
	return nil
}

// record records spent and reserved bytes. b.mu is held.
func (b *Budgets) record(now time.Duration) error {
	if b.Record == nil {
		return nil
	}
	return b.Record(b.spent(now))
}

// spent returns what is to be recorded. b.mu is held.
func (b *Budgets) spent(now time.Duration) (out []kept.Spent) {
	for k, x := range b.all {
		if sent := x.window.recorded(now); sent != nil {
			out = append(out, kept.Spent{Rule: k.rule, Upload: k.upload, At: x.window.at, Sent: sent})
		}
	}
	sortfunc.Stable(out, func(x, y kept.Spent) int {
		return cmp.Or(cmp.Compare(x.Rule, y.Rule), cmp.Compare(x.Upload.Bytes, y.Upload.Bytes), cmp.Compare(x.Upload.Per, y.Upload.Per))
	})
	return out
}

// budget is the upload budget of one rule, shared by all its connections.
type budget struct {
	all    *Budgets
	key    budgetKey
	window window // under all.mu

	mu   sync.Mutex
	open map[*way]struct{}
}

// take takes up to n bytes and returns how many may be sent. Those are recorded as
// spent.
func (b *budget) take(n int) int {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	now := clock.Boot()
	if b.all.Record != nil && b.window.reserve(now, int64(n)) {
		if err := b.all.record(now); err != nil {
			b.window.reserved = 0
			return 0
		}
	}
	return int(b.window.take(now, int64(n)))
}

// wait returns how long nothing can be sent; 0 if something can.
func (b *budget) wait() time.Duration {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	return b.window.free(clock.Boot())
}

func (b *budget) used() int64 {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.window.advance(clock.Boot())
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

// errUsedUp ends a connection that tries to send more than its budget has.
var errUsedUp = errors.New("the upload budget is used up")
