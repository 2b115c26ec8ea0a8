package engine

import (
	"context"
	"errors"
	"testing"
)

// TestRunnerTellsRefusals: what a container printed explains a failure, but no refusal.
func TestRunnerTellsRefusals(t *testing.T) {
	told := &NotReadyError{Service: "a", Reason: "printed"}
	for _, tt := range []struct {
		name string
		err  error
		told bool
	}{
		{"a failure", errors.New("failed"), true},
		{"a refusal", &RefusedError{Promise: "B13", Reason: "refused"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &Runner{Plan: &Plan{Steps: []Step{{ID: 1, Op: OpWaitReady, Service: "a"}}}, Told: func() error { return told }, Do: func(context.Context, Step) error { return tt.err }}
			if err := r.Run(t.Context()); errors.As(err, new(*NotReadyError)) != tt.told || errors.As(err, new(*RefusedError)) == tt.told {
				t.Errorf("%v", err)
			}
		})
	}
}
