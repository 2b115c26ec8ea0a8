package cli

import (
	"testing"

	"github.com/llmdo/workshop/compose"
)

// What a compile that was killed has written is no user's file for the next one.
func TestGeneratedAfterAKill(t *testing.T) {
	base := t.TempDir()
	files := func(text string) generated {
		return newGenerated(base, "out", []compose.File{{Path: "a", Data: []byte(text)}, {Path: "b", Data: []byte(text)}})
	}
	if _, err := files("one").write(); err != nil {
		t.Fatal(err)
	}
	killed := files("two")
	dir, err := killed.open(true)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	known, err := previous(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := killed.announce(dir, known); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(dir, killed.files[0]); err != nil {
		t.Fatal(err)
	}
	done, err := files("three").write()
	if err != nil || len(done.kept) > 0 {
		t.Errorf("kept %v, %v", done.kept, err)
	}
	if err := dir.WriteFile("b", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err = files("four").write()
	if err != nil || len(done.kept) != 1 {
		t.Errorf("control: a user's file: kept %v, %v", done.kept, err)
	}
	if left, err := files("four").check(); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
