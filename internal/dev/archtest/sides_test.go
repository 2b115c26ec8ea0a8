package archtest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write sides.txt")

// TestSides: on which side of the boundary each of our packages is linked stands in
// sides.txt, so that a review sees where code that holds containers, or reads what a
// worker writes, gets a new place.
func TestSides(t *testing.T) {
	programs := map[string]string{"/cmd/workshop": "host", "/cmd/llmdo": "host", "/cmd/workshop-init": "inside", "/cmd/workshop-vm": "vm"}
	sides, vm := map[string]string{}, map[string]bool{}
	for _, p := range packages(t) {
		side := programs[strings.TrimPrefix(p.ImportPath, module)]
		if side == "" {
			continue
		}
		for _, d := range p.Deps {
			name, ours := strings.CutPrefix(d, module+"/")
			switch {
			case d == "testing":
				t.Errorf("%s links package testing", p.ImportPath)
			case !ours:
			case side == "vm":
				vm[name] = true
			case sides[name] == "" || sides[name] == side:
				sides[name] = side
			default:
				sides[name] = "both"
			}
		}
	}
	var lines []string
	for name, side := range sides {
		if vm[name] {
			name += " +vm"
		}
		lines = append(lines, fmt.Sprintf("%-6s %s\n", side, name))
	}
	for name := range vm {
		if sides[name] == "" {
			lines = append(lines, fmt.Sprintf("%-6s %s\n", "vm", name))
		}
	}
	slices.Sort(lines)
	got := sidesHead + strings.Join(lines, "")
	if *update {
		if err := os.WriteFile("sides.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("sides.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("sides.txt differs; look at the change, then `go test ./internal/dev/archtest -run Sides -update`:\n%s", differing(string(want), got))
	}
}

const sidesHead = `# Which packages are linked into the host programs (host), into workshop-init, the
# one program inside containers and around them (inside), or into both; which into
# workshop-vm, the program of virtual machines, alone (vm) or too (+vm).
`

// differing are the lines that only one of two texts has.
func differing(want, got string) string {
	var out strings.Builder
	only := func(mark, x, y string) {
		for line := range strings.Lines(x) {
			if !slices.Contains(slices.Collect(strings.Lines(y)), line) {
				out.WriteString(mark + line)
			}
		}
	}
	only("-", want, got)
	only("+", got, want)
	return out.String()
}
