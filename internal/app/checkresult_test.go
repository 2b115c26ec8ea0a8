package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/workshop/worker"
)

// TestResultThatTakesLong: B60: a worker writes the answer, and no answer may keep
// check-result busy for ever.
func TestResultThatTakesLong(t *testing.T) {
	schema := []byte(`{"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [
		{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a", "b"]},
		{"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["a", "c"]}]}}}`)
	const depth = 13 // of which each doubles the work
	result := []byte(strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth))
	t.Run("limit", func(t *testing.T) {
		if _, err := checkInTime(t.Context(), time.Millisecond, schema, "result.json", result); err == nil || !strings.Contains(err.Error(), "took more than 1ms") {
			t.Errorf("got %v, want that it takes too long", err)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ErrInterrupted)
		if _, err := checkInTime(ctx, time.Minute, schema, "result.json", result); !errors.Is(err, ErrInterrupted) {
			t.Errorf("got %v, want %v", err, ErrInterrupted)
		}
	})
	t.Run("in time", func(t *testing.T) {
		if list, err := checkInTime(t.Context(), time.Minute, schema, "result.json", []byte(`1`)); err != nil || !list.HasErrors() {
			t.Errorf("got %v, %v, want what is wrong with the result", list, err)
		}
	})
}

// TestResultThatTakesMemory: B60: nor may one fill the memory.
func TestResultThatTakesMemory(t *testing.T) {
	schema := []byte(`{"anyOf":[` + strings.Repeat(`{"type":"integer"},`, 100) + `{"type":"integer"}]}`)
	result := []byte(`"` + strings.Repeat("x", worker.MaxResult-2) + `"`)
	if _, err := checkInTime(t.Context(), time.Minute, schema, "result.json", result); err == nil || !strings.Contains(err.Error(), "MiB of memory") {
		t.Errorf("got %v, want that it takes too much memory", err)
	}
	if list := worker.CheckResult(schema, "result.json", append(result, "   "...)); len(list) != 1 || !strings.Contains(list[0].Summary, "more than 4194304 bytes") {
		t.Error(list)
	}
}
