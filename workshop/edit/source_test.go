package edit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/workshop/edit"
)

func TestAddSource(t *testing.T) {
	const from = "git+https://git.example.org/acme/sast"
	imp := edit.Source{As: "sast", From: from, Version: "^2"}
	base := edit.Source{From: from + "//x", Version: "v1.4.2", Signer: "SHA256:x"}
	const line = `{as: sast, from: "git+https://git.example.org/acme/sast", version: "^2"}`
	for _, c := range []struct {
		name, in string
		s        edit.Source
		out      string // or what the error says
	}{
		{"a new list", "workshop:\n  name: a # mine\n  description: x\n\n  workers: [b]\n", imp, "workshop:\n  name: a # mine\n  description: x\n  imports:\n    - " + line + "\n\n  workers: [b]\n"},
		{"as lists are indented", "workshop:\n  name: a\n  workers:\n  - b\n", imp, "workshop:\n  name: a\n  imports:\n  - " + line + "\n  workers:\n  - b\n"},
		{"another item", "workshop:\n  name: a\n  imports:\n    # one\n    - {as: b, from: c}\n  workers: [b]\n", imp, "workshop:\n  name: a\n  imports:\n    # one\n    - {as: b, from: c}\n    - " + line + "\n  workers: [b]\n"},
		{"another one on the line", "workshop:\n  name: a\n  imports: [{as: b, from: c}]\n", imp, "workshop:\n  name: a\n  imports: [{as: b, from: c}, " + line + "]\n"},
		{"in braces", "workshop: {name: a, workers: [b]}\n", imp, "workshop: {name: a, workers: [b], imports: [" + line + "]}\n"},
		{"there already", "workshop:\n  imports:\n    - from: " + from + "\n      version: ^2\n      as: sast\n", imp, "workshop:\n  imports:\n    - from: " + from + "\n      version: ^2\n      as: sast\n"},
		{"a base", "workshop:\n  name: a\n  container: {image: b}\n", base, "workshop:\n  name: a\n  extends: {from: \"git+https://git.example.org/acme/sast//x\", version: \"v1.4.2\", signer: \"SHA256:x\"}\n  container: {image: b}\n"},
		{"another base", "workshop:\n  name: a\n  extends: {from: c}\n", base, "extends another one already"},
		{"no list", "workshop:\n  name: a\n  imports: b\n", imp, "imports is not a list"},
		{"no workshop", "a: b\n", imp, "workshop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := edit.AddSource([]byte(c.in), c.s)
			if err != nil {
				if !strings.Contains(err.Error(), c.out) || got != nil {
					t.Error(err)
				}
				return
			}
			if diff := cmp.Diff(c.out, string(got)); diff != "" {
				t.Error(diff)
			}
			if again, err := edit.AddSource(got, c.s); err != nil || !bytes.Equal(again, got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
		})
	}
}

// Any file and source: no panic; what succeeds has the file's own bytes in their order,
// and is the same a second time.
func FuzzAddSource(f *testing.F) {
	paths, _ := filepath.Glob("../../examples/*/workshop.yaml")
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "sast", "git+https://git.example.org/acme/sast", "^2")
		f.Add(data, "", "git+https://git.example.org/acme/sast//x", "")
	}
	f.Fuzz(func(t *testing.T, src []byte, as, from, version string) {
		s := edit.Source{As: as, From: from, Version: version}
		out, err := edit.AddSource(src, s)
		if err != nil {
			return
		}
		rest := out
		for _, b := range src {
			i := bytes.IndexByte(rest, b)
			if i < 0 {
				t.Fatalf("bytes of the file are lost:\n%q\n%q", src, out)
			}
			rest = rest[i+1:]
		}
		if again, err := edit.AddSource(out, s); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("a second time: %v\n%q\n%q", err, out, again)
		}
	})
}
