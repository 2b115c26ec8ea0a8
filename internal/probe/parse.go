//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// probe is one kind of try.
type probe struct {
	name  string
	usage string
	tells string // its results, for the help
	min   int    // positional arguments
	run   func(a args) (seen, detail string)
}

// try is one probe with its arguments.
type try struct {
	probe    probe
	args     args
	expected string
	repeat   time.Duration
}

// args are the arguments of one probe.
type args struct {
	words  []string // as written
	pos    []string
	opts   map[string]string
	limit  time.Duration
	stdout io.Writer // for probes that report while they run
}

// at returns the i-th positional argument or the default.
func (a args) at(i int, def string) string {
	if i < len(a.pos) {
		return a.pos[i]
	}
	return def
}

// opt returns an option or the default.
func (a args) opt(key, def string) string {
	if v, ok := a.opts[key]; ok {
		return v
	}
	return def
}

// defaultLimit ends a try that hangs. It is far above what any denial may
// take, so that a hang shows as TIMEOUT and as a long time.
const defaultLimit = 5 * time.Second

// parse reads one probe.
func parse(text string) (try, error) {
	body, expected, _ := strings.Cut(text, "->")
	words, err := split(body)
	if err != nil {
		return try{}, err
	}
	if len(words) == 0 {
		return try{}, errors.New("empty")
	}
	all := probes()
	i := slices.IndexFunc(all, func(p probe) bool { return p.name == words[0] })
	if i < 0 {
		return try{}, errors.New("no such probe; `workshop-init probe help` lists them")
	}
	t := try{probe: all[i], expected: strings.TrimSpace(expected)}
	t.args = args{words: words[1:], opts: map[string]string{}, limit: defaultLimit}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok && isKey(k) {
			t.args.opts[k] = v
		} else {
			t.args.pos = append(t.args.pos, w)
		}
	}
	if len(t.args.pos) < t.probe.min {
		return try{}, fmt.Errorf("usage: %s %s", t.probe.name, t.probe.usage)
	}
	for key, to := range map[string]*time.Duration{"limit": &t.args.limit, "for": &t.repeat} {
		if v, ok := t.args.opts[key]; ok {
			if *to, err = time.ParseDuration(v); err != nil {
				return try{}, fmt.Errorf("%s=%s: not a duration", key, v)
			}
		}
	}
	return t, nil
}

// isKey reports whether text is an option's name, not other text with "=".
func isKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < 'a' || r > 'z' })
}

// split separates words at blanks; a word or the value of an option may be a
// double-quoted Go string.
func split(s string) ([]string, error) {
	var words []string
	for s = strings.TrimLeft(s, " \t"); s != ""; s = strings.TrimLeft(s, " \t") {
		end := strings.IndexAny(s, " \t\"")
		switch {
		case end < 0:
			return append(words, s), nil
		case s[end] != '"':
			words, s = append(words, s[:end]), s[end:]
			continue
		}
		quoted, err := strconv.QuotedPrefix(s[end:])
		if err != nil {
			return nil, errors.New("unterminated quotes")
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", quoted, err)
		}
		words, s = append(words, s[:end]+value), s[end+len(quoted):]
	}
	return words, nil
}
