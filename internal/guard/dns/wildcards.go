package dns

import (
	"strings"
	"sync"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/guard/events"
)

// Bounds of the names under a wildcard. A web page needs fewer than 60 new names at once.
const (
	maxWildLabel = firewall.MaxWildLabel
	maxWildName  = firewall.MaxWildName
	wildBurst    = 60
	wildEvery    = time.Second // per further new name
)

// Bounds of the known names. A forgotten name costs a token again. There are few,
// because the choice among known names can carry information too.
const (
	maxWildKnown = 256
	wildForget   = time.Hour
	maxWildRules = 1024
)

// Wildcards bounds what a room can tell the name servers of names under a
// wildcard, or of any name while the room learns: the number and length of new
// names (D5). It counts names by pattern, for all types and across all policies. The
// zero value is ready for use.
type Wildcards struct {
	mu    sync.Mutex
	rules map[firewall.HostPattern]*wildcard
	now   func() time.Time // for tests; nil is time.Now
}

// wildcard is a token bucket, and the admitted names with the time of their last
// look-up.
type wildcard struct {
	tokens int
	filled time.Time // time of the last refill
	known  map[firewall.Name]time.Time
}

// Admit decides about an allowed name before it is looked up; d allowed it. A name
// beyond the bounds is denied. Lines with the exact name have no bounds, nor has
// mode open, which promises nothing about names.
func (w *Wildcards) Admit(n firewall.Name, d firewall.Decision) firewall.Decision {
	return bounded(n, d, w.take)
}

// Would returns the result of Admit without counting.
func (w *Wildcards) Would(n firewall.Name, d firewall.Decision) firewall.Decision {
	return bounded(n, d, w.has)
}

func bounded(n firewall.Name, d firewall.Decision, ask func(firewall.HostPattern, firewall.Name) bool) firewall.Decision {
	var pattern firewall.HostPattern // zero: learning
	labels := n.String()
	switch {
	case !d.Allowed:
		return d
	case d.Rule != nil && d.Rule.Host.IsWildcard():
		pattern = d.Rule.Host
		base := strings.TrimLeft(pattern.String(), "*")
		labels = strings.TrimSuffix(labels, base)
	case d.Reason == firewall.ReasonLearned:
	default:
		return d
	}
	if len(n.String()) <= maxWildName && !longLabel(labels) && ask(pattern, n) {
		return d
	}
	return firewall.Decision{Rule: d.Rule, Reason: events.ReasonWildcard, Suggest: exactly(n, d)}
}

// has reports whether a name is known, or there is a token for it.
func (w *Wildcards) has(pattern firewall.HostPattern, n firewall.Name) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left(pattern, n, w.time())
}

// left is has with w.mu held.
func (w *Wildcards) left(pattern firewall.HostPattern, n firewall.Name, now time.Time) bool {
	x := w.rules[pattern]
	if x == nil {
		_, old := w.oldest(now)
		return len(w.rules) < maxWildRules || old
	}
	return x.knows(n, now) || x.tokens > 0 || now.Sub(x.filled) >= wildEvery
}

// take is has, but takes the token.
func (w *Wildcards) take(pattern firewall.HostPattern, n firewall.Name) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.time()
	if !w.left(pattern, n, now) {
		return false
	}
	x := w.rules[pattern]
	if x == nil {
		if w.rules == nil {
			w.rules = map[firewall.HostPattern]*wildcard{}
		}
		if len(w.rules) >= maxWildRules {
			p, _ := w.oldest(now)
			delete(w.rules, p)
		}
		x = &wildcard{tokens: wildBurst, filled: now, known: map[firewall.Name]time.Time{}}
		w.rules[pattern] = x
	}
	if x.knows(n, now) {
		x.known[n] = now
		return true
	}
	if more := int(now.Sub(x.filled) / wildEvery); more > 0 {
		x.tokens = min(wildBurst, x.tokens+more)
		x.filled = x.filled.Add(time.Duration(more) * wildEvery)
	}
	x.tokens--
	x.remember(n, now)
	return true
}

func (w *Wildcards) time() time.Time {
	if w.now != nil {
		return w.now()
	}
	return time.Now()
}

func (x *wildcard) knows(n firewall.Name, now time.Time) bool {
	last, ok := x.known[n]
	return ok && now.Sub(last) < wildForget
}

// remember adds a name and evicts the least recently used one. It searches at most
// maxWildKnown names, once for each new name.
func (x *wildcard) remember(n firewall.Name, now time.Time) {
	if _, ok := x.known[n]; !ok && len(x.known) >= maxWildKnown {
		var oldest firewall.Name
		at := now
		for k, last := range x.known {
			if !last.After(at) {
				oldest, at = k, last
			}
		}
		delete(x.known, oldest)
	}
	x.known[n] = now
}

// oldest returns a pattern that was unused for so long that its bucket is full.
// New patterns come from changes of the policy alone.
func (w *Wildcards) oldest(now time.Time) (firewall.HostPattern, bool) {
	for p, x := range w.rules {
		if now.Sub(x.filled) > wildForget {
			return p, true
		}
	}
	return firewall.HostPattern{}, false
}

func longLabel(labels string) bool {
	for l := range strings.SplitSeq(labels, ".") {
		if len(l) > maxWildLabel {
			return true
		}
	}
	return false
}

// exactly returns the line with the exact name, for the wildcard's port.
func exactly(n firewall.Name, d firewall.Decision) string {
	if d.Rule == nil {
		return d.Suggest
	}
	for _, web := range firewall.DefaultAllowPorts() {
		if firewall.HasPort(d.Rule.Ports, web.First) {
			return n.String()
		}
	}
	return n.String() + ":" + firewall.FormatPorts(d.Rule.Ports[:1])
}
