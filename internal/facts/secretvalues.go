package facts

import (
	"bytes"
	"slices"

	"github.com/llmdo/workshop/workshop"
)

// SecretValues returns the values of a workshop's secrets, for redaction; a value with
// surrounding space also without it. Secrets without a readable value are left out, as
// no worker has them.
func SecretValues(w *workshop.Workshop, projectDir string, lookup func(string) (string, bool)) []string {
	c := &collector{o: &Options{Workshop: w, Lookup: lookup}}
	c.facts.ProjectDir = projectDir
	var values []string
	add := func(v []byte) {
		if len(v) > 0 && !slices.Contains(values, string(v)) {
			values = append(values, string(v))
		}
	}
	for i := range w.Workers {
		for j := range w.Workers[i].Container.Secrets {
			if v, err := c.secretValue(&w.Workers[i].Container.Secrets[j]); err == nil {
				add(v)
				add(bytes.TrimSpace(v))
			}
		}
	}
	return values
}
