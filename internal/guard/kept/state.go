package kept

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/llmdo/workshop/firewall"
)

// With denies of maxDenyBytes and [firewall.MaxBudgets] a state fits into a slot.
// With more budgets than maxExact its times are coarser, to write less.
const (
	maxDenyBytes = 60_000
	maxExact     = 32
)

// State is what restricts rooms beyond their policy: a room's record has budgets, the
// stored one the denies.
type State struct {
	// Boot is the boot ID of the machine; denies only.
	Boot    string  `json:"boot,omitempty"`
	Denies  []Deny  `json:"denies,omitempty"`
	Budgets []Spent `json:"budgets,omitempty"`
}

// Deny is a live deny. Until counts after another boot, else Ends does.
type Deny struct {
	firewall.Live
	// Workers are those of its room, whom it follows.
	Workers []string `json:"workers,omitempty"`
	// Ends is when it ends, by clock.Boot; 0: never.
	Ends time.Duration `json:"ends,omitempty"`
}

// Spent is what was sent under a rule with an upload budget.
type Spent struct {
	// Rule identifies the rule across all policies.
	Rule   string          `json:"rule"`
	Upload firewall.Budget `json:"upload"`
	// At is the time of the record, in 60ths of the budget's period by
	// clock.Boot.
	At int64 `json:"at"`
	// Sent has pairs of a time like At, ascending, and the bytes sent then.
	Sent [][2]int64 `json:"sent"`
}

// fold counts all bytes as sent at the newest time: they are freed later than
// necessary, never earlier.
func (s Spent) fold() Spent {
	var sum int64
	for _, x := range s.Sent {
		sum += x[1]
	}
	s.Sent = [][2]int64{{s.At, sum}}
	return s
}

// encode returns the payload of a slot.
func (s State) encode() ([]byte, error) {
	if budgets := s.Budgets; len(budgets) > maxExact {
		s.Budgets = make([]Spent, len(budgets))
		for i := range budgets {
			s.Budgets[i] = budgets[i].fold()
		}
	}
	b, err := json.Marshal(s)
	if err == nil && len(b) > maxPayload {
		err = fmt.Errorf("%d bytes to record, at most %d", len(b), maxPayload)
	}
	return b, err
}

// CheckDenies refuses more live denies than can be recorded.
func CheckDenies(denies []Deny) error {
	b, err := json.Marshal(denies)
	if err == nil && len(b) > maxDenyBytes {
		err = fmt.Errorf("%d bytes of live denies, at most %d: write them into network.deny of workshop.yaml", len(b), maxDenyBytes)
	}
	return err
}

// decode parses the output of encode and nothing else. Times and sums are checked
// by the budgets.
func decode(b []byte) (s State, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return State{}, errors.New("trailing data")
	}
	return s, s.check()
}

func (s State) check() error {
	for _, d := range s.Denies {
		if !d.Deny || d.Ends < 0 || d.Rule.Template != "" || d.Rule.Preset != "" {
			return errors.New("not a live deny")
		}
		if err := d.Check(); err != nil {
			return fmt.Errorf("live deny: %w", err)
		}
	}
	for _, x := range s.Budgets {
		if x.Rule == "" || x.Upload.IsZero() {
			return errors.New("not a budget")
		}
	}
	return nil
}
