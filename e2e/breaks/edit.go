// Package breaks reads the .edit files of this directory, one way each to
// break a promise, and applies them to a copy of the repository.
package breaks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Unchecked takes both checks of containers out: of what an engine stored, and of what it
// made. It breaks no promise by itself: `make bench` measures what they cost.
const Unchecked = "unchecked.txt"

// Break is one .edit file.
type Break struct {
	Name  string   // of the file
	Title string   // its first line
	Fails []string // tests that must fail
	On    string   // engine on which they run, as -engine names it
	With  []string // other edits that come along
	// Verify are the promises that `workshop verify` must find broken; empty: the break
	// changes nothing that it looks at.
	Verify []string
	// Covered is another edit, without which alone this one is noticed.
	Covered string
	Edits   []Edit
}

// Edit replaces one piece of a file.
type Edit struct{ File, Old, New string }

// Read reads one file.
func Read(path string) (*Break, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b := &Break{On: "docker", Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	file := ""
	var now Edit
	end := func() {
		if now.Old != "" {
			b.Edits = append(b.Edits, now)
		}
		now = Edit{File: file}
	}
	for i, line := range strings.Split(strings.TrimRight(string(data), "\n"), "\n") {
		name, isFile := strings.CutPrefix(line, "--- ")
		switch {
		case isFile:
			end()
			file = name
			now.File = file
		case file == "" && strings.HasPrefix(line, "# ") && b.Title == "":
			b.Title = line[2:]
		case file == "" && strings.HasPrefix(line, "fails: "):
			b.Fails = strings.Fields(line[7:])
		case file == "" && strings.HasPrefix(line, "on: "):
			b.On = line[4:]
		case file == "" && strings.HasPrefix(line, "covered: "):
			b.Covered = line[9:]
		case file == "" && strings.HasPrefix(line, "verify: "):
			b.Verify = strings.Fields(line[8:])
		case file == "" && strings.HasPrefix(line, "because: "): // for people
		case file == "" && strings.HasPrefix(line, "with: "):
			b.With = strings.Fields(line[6:])
		case line == "":
			end()
		case file != "" && line[0] == '-':
			now.Old += line[1:] + "\n"
		case file != "" && line[0] == '+':
			now.New += line[1:] + "\n"
		default:
			return nil, fmt.Errorf("%s:%d: can't be read: %q", path, i+1, line)
		}
	}
	end()
	return b, nil
}

// Apply makes the edits below root. Each old piece must be there exactly once.
func (b *Break) Apply(root string) error {
	for _, e := range b.Edits {
		path := filepath.Join(root, e.File)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(data), e.Old); n != 1 {
			return fmt.Errorf("%s: what %s replaces is there %d times:\n%s", e.File, b.Name, n, e.Old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), e.Old, e.New, 1)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
