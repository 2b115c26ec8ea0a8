package app

import (
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/guard/control"
)

// Workers of a learning room learn, and others don't.
func TestLearningOf(t *testing.T) {
	until := time.Now().Add(time.Hour)
	s := control.State{
		Learning: map[string]time.Time{"room-b": until},
		Rooms:    []control.RoomState{{Room: "room-a", Workers: []string{"a"}}, {Room: "room-b", Workers: []string{"c", "b"}}},
	}
	by := learningOf(s)
	if len(by) != 2 || !by["b"].Equal(until) || !by["c"].Equal(until) {
		t.Errorf("%v", by)
	}
	if text := LearningText(s); !strings.HasSuffix(text, "the allow list is not enforced for b and c (B23–B25)") {
		t.Error(text)
	}
}
