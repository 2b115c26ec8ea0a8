package app

import (
	"os"
	"testing"

	"github.com/llmdo/workshop/compose"
)

// What a compile that was killed has written is no user's file for the next one.
func TestGeneratedAfterAKill(t *testing.T) {
	base := t.TempDir()
	files := func(text string) Generated {
		return newGenerated(base, "out", []compose.File{{Path: "a", Data: []byte(text)}, {Path: "b", Data: []byte(text)}})
	}
	if _, err := files("one").Write(); err != nil {
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
	done, err := files("three").Write()
	if err != nil || len(done.Kept) > 0 {
		t.Errorf("kept %v, %v", done.Kept, err)
	}
	if err := dir.WriteFile("b", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err = files("four").Write()
	if err != nil || len(done.Kept) != 1 {
		t.Errorf("control: a user's file: kept %v, %v", done.Kept, err)
	}
	if left, err := files("four").Check(); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestCheckOfStrangeFiles: what Compose would read beside the generated files is
// named.
func TestCheckOfStrangeFiles(t *testing.T) {
	g := newGenerated(t.TempDir(), ".workshop/x", []compose.File{{Path: "compose.yaml", Data: []byte("services: {}\n")}})
	if _, err := g.Write(); err != nil {
		t.Fatal(err)
	}
	if all, err := g.Check(); err != nil || len(all) > 0 {
		t.Fatalf("got %v, %v", all, err)
	}
	for _, name := range byItself {
		if err := os.WriteFile(g.Path(name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if all, err := g.Check(); err != nil || len(all) != 1 || all[0].Path != name {
			t.Errorf("%s: got %v, %v", name, all, err)
		}
		if err := os.Remove(g.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
}
