package proxy

import (
	"github.com/llmdo/workshop/internal/guard/control"
	"github.com/llmdo/workshop/internal/guard/policy"
)

// Budgets count what a room sends by the rules that have a budget, through all
// sessions of the room and all policies. The zero value is ready for use.
type Budgets struct{}

// State tells how much of each budget of a policy is used.
func (b *Budgets) State(p *policy.Room) []control.BudgetState { return nil }
