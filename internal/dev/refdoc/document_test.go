package refdoc

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference.md")

const file = "../../../docs/reference.md"

// The reference is up to date, and short enough to be read.
func TestReference(t *testing.T) {
	text, err := Document("")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != text {
		t.Errorf("docs/reference.md differs from the types (%v): run make generate", err)
	}
	if n := len(strings.Fields(strings.ReplaceAll(text, "|", " "))); n > 3650 {
		t.Errorf("%d words, more than 3,650", n)
	}
}
