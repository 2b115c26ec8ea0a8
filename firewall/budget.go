package firewall

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Budget bounds the bytes sent in any interval of a given length: "5M/h". The zero
// value means no bound.
type Budget struct {
	// Bytes is positive.
	Bytes int64
	// Per is a minute, an hour or a day.
	Per time.Duration
}

var (
	budgetSizes = map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
	budgetTimes = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}
)

// maxBudget keeps sums far from overflowing.
const maxBudget = 1 << 50

// MaxBudgets bounds the lines with an upload budget of one room: as many as fit into
// the file that the room keeps for the guard.
const MaxBudgets = 512

// Budgets counts the lines with an upload budget.
func (p *RoomPolicy) Budgets() (n int) {
	for i := range p.Allow {
		if !p.Allow[i].Upload.IsZero() {
			n++
		}
	}
	return n
}

// ParseBudget parses NUMBER[K|M|G]/m|h|d; sizes are powers of 1024 as in Compose.
func ParseBudget(s string) (Budget, error) {
	bad := fmt.Errorf("%q is not a budget; write a size and a time: 500K/m, 5M/h, 1G/d", clip.Bytes(s, shown))
	size, per, ok := strings.Cut(s, "/")
	b := Budget{Per: budgetTimes[per]}
	if !ok || b.Per == 0 || size == "" || len(size) > 16 {
		return Budget{}, bad
	}
	unit := int64(1)
	if u := budgetSizes[size[len(size)-1]]; u != 0 {
		unit, size = u, size[:len(size)-1]
	}
	n, err := strconv.ParseUint(size, 10, 50)
	if err != nil || size[0] == '+' || size[0] == '0' || int64(n) > maxBudget/unit {
		return Budget{}, bad
	}
	b.Bytes = int64(n) * unit
	return b, nil
}

// IsZero reports whether there is no bound.
func (b Budget) IsZero() bool { return b == Budget{} }

// String returns the form that ParseBudget parses; "" for the zero value.
func (b Budget) String() string {
	if b.IsZero() {
		return ""
	}
	size := strconv.FormatInt(b.Bytes, 10)
	for _, unit := range []byte("GMK") {
		if n := budgetSizes[unit]; b.Bytes%n == 0 {
			size = strconv.FormatInt(b.Bytes/n, 10) + string(unit)
			break
		}
	}
	for name, d := range budgetTimes {
		if d == b.Per {
			return size + "/" + name
		}
	}
	return "invalid"
}

// within reports whether keeping b implies keeping o.
func (b Budget) within(o Budget) bool {
	switch {
	case o.IsZero():
		return true
	case b.IsZero():
		return false
	}
	times := int64((o.Per + b.Per - 1) / b.Per) // at least 1
	return b.Bytes <= o.Bytes/times
}

// MarshalText writes the budget as String does.
func (b Budget) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText parses a budget as [ParseBudget] does; empty text means no bound.
func (b *Budget) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*b = Budget{}
		return nil
	}
	*b, err = ParseBudget(string(text))
	return err
}
