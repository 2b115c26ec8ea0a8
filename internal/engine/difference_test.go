package engine

import (
	"errors"
	"strings"
	"testing"
)

func TestRefuseDifferences(t *testing.T) {
	memory := Difference{Promise: "B5", Field: "Memory", Asked: "512m"}
	for _, c := range []struct {
		name string
		all  []Difference
		want string
	}{
		{"one", []Difference{memory},
			"worker one isn't what was asked of the engine: Memory: asked 512m, found none (B5): use another engine"},
		{"two of one promise", []Difference{memory, {Promise: "B5", Field: "PidsLimit", Asked: "64", Found: "128"}},
			"worker one isn't what was asked of the engine: Memory: asked 512m, found none; PidsLimit: asked 64, found 128 (B5): use another engine"},
		{"two promises", []Difference{memory, {Promise: "B1", Field: "CapAdd", Found: "CAP_SYS_ADMIN"}},
			"worker one isn't what was asked of the engine: B5 Memory: asked 512m, found none; B1 CapAdd: asked none, found CAP_SYS_ADMIN (B1, B5): use another engine"},
		{"no promise", []Difference{{Field: "Labels", Asked: "a=b"}},
			"worker one isn't what was asked of the engine: Labels: asked a=b, found none: use another engine"},
		{"what an engine says", []Difference{{Promise: "B4", Field: "User", Asked: "1000", Found: "\x1b[2J" + strings.Repeat("0", 1000)}},
			`worker one isn't what was asked of the engine: User: asked 1000, found \x1b[2J` + strings.Repeat("0", 296) + "… (B4): use another engine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := RefuseDifferences("worker one", c.all, "use another engine")
			if _, ok := errors.AsType[*RefusedError](err); !ok || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	if err := RefuseDifferences("worker one", nil, "use another engine"); err != nil {
		t.Errorf("without a difference: %v", err)
	}
}
