package facts

import (
	"bytes"
	"slices"

	"github.com/llmdo/workshop/workshop"
)

// SecretValues gives the values of a workshop's secrets, for whoever writes texts
// that they must not enter; of a value with space around it also what is
// within. A secret without a value, or one that can't be read, is left out:
// no worker has it either.
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
