package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/clip"
)

// Probe is one try in a worker.
type Probe struct {
	Key  string // of its result
	Text string // as workshop-init probe takes it
}

// Result is what a probe says it saw.
type Result struct {
	Name   string  `json:"name"`
	Seen   string  `json:"seen"`
	Detail string  `json:"detail"`
	Millis float64 `json:"ms"`
}

// Seen are the results by key. What isn't in it was not seen.
type Seen map[string]Result

// MaxOutput bounds what is read of a probe's output.
const MaxOutput = 1 << 20

// ParseSeen reads the output of a probe program that was given these probes. It comes
// from the worker: anything but one line for each, in order, is an error.
func ParseSeen(out []byte, probes []Probe) (Seen, error) {
	seen := Seen{}
	i := 0
	for line := range bytes.Lines(out) {
		var r Result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("the probe printed %s", clip.Runes(strings.ToValidUTF8(string(line), "?"), 80))
		}
		if i == len(probes) || r.Name != probes[i].Key {
			return nil, fmt.Errorf("the probe printed a result of %q", clip.Runes(r.Name, 40))
		}
		seen[r.Name] = r
		i++
	}
	if i != len(probes) {
		return nil, fmt.Errorf("the probe printed %d of %d results; something in the worker may have ended it", i, len(probes))
	}
	return seen, nil
}

// unclear are results that say nothing about a promise: the worker has no room for
// the try, or the probe can't do it here.
var unclear = []string{"EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "EINTR", "ENOBUFS", "ERROR", "killed"}

// refused records tries that must be refused, with one of these words.
func (e *evidence) refused(seen Seen, what string, words []string, keys ...string) {
	var fine []string
	for _, key := range keys {
		r, ok := seen[key]
		name := strings.TrimPrefix(key[strings.Index(key, ".")+1:], " ")
		switch {
		case !ok:
			e.miss("the probe said nothing of %s", name)
		case slices.Contains(words, r.Seen):
			fine = append(fine, name+" "+r.Seen)
		case slices.Contains(unclear, r.Seen):
			e.miss("%s could not be tried: %s", name, saw(r))
		default:
			e.inside(false, "%s: %s, want %s", name, saw(r), strings.Join(words, " or "))
		}
	}
	if len(fine) > 0 {
		e.inside(true, "%s: %s", what, strings.Join(fine, ", "))
	}
}

// says records a fact that a probe must report.
func (e *evidence) says(seen Seen, key, what, want string) {
	r, ok := seen[key]
	switch {
	case !ok:
		e.miss("the probe said nothing of %s", what)
	case slices.Contains(unclear, r.Seen):
		e.miss("%s: %s", what, saw(r))
	default:
		e.inside(r.Seen == want, "%s %s", what, saw(r))
	}
}

// works records a try that must succeed: a control.
func (e *evidence) works(seen Seen, key, what string, words ...string) {
	r, ok := seen[key]
	if !ok {
		e.miss("the probe said nothing of its control, %s", what)
		return
	}
	e.control(slices.Contains(words, r.Seen), "%s: %s", what, saw(r))
}

// saw is a result in a few words.
func saw(r Result) string {
	switch {
	case r.Seen == "":
		return "no result"
	case r.Detail == "" || r.Seen == strings.ToUpper(r.Seen):
		return clip.Runes(r.Seen, 80)
	}
	return clip.Runes(r.Seen, 80) + " (" + clip.Runes(r.Detail, 80) + ")"
}
