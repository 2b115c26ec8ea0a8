package service

import (
	"reflect"
	"testing"

	"github.com/llmdo/workshop/workshop"
)

// TestRoomOfAnother: another file of the same name and another context need another room: a
// mount goes on with the file that it was made of, and a server with its flags.
func TestRoomOfAnother(t *testing.T) {
	room := func(sha256 string, context int64) any {
		s := &workshop.ModelService{Name: "qwen", File: workshop.Value[string]{V: "qwen.gguf"}, SHA256: workshop.Value[string]{V: sha256}, Context: workshop.Value[int64]{V: context}}
		return Room(&workshop.Workshop{}, s, "/models/qwen.gguf").Workers[0].Container
	}
	if !reflect.DeepEqual(room("a", 0), room("a", 0)) {
		t.Error("the same model has another room")
	}
	if reflect.DeepEqual(room("a", 0), room("b", 0)) {
		t.Error("another file has the same room")
	}
	if reflect.DeepEqual(room("a", 0), room("a", 512)) {
		t.Error("another context has the same room")
	}
}
