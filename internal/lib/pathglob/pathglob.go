// Package pathglob bounds untrusted globs: *, ?, [a-z], {a,b}, and ** for any number of
// directories. Matching is done by doublestar, whose work is bounded by their length and
// alternatives (B60).
package pathglob

import (
	"errors"
	"fmt"

	"github.com/bmatcuk/doublestar/v4"
)

// Limits of a glob. Alternatives multiply, and each is tried on each path.
const (
	MaxBytes        = 1024
	MaxAlternatives = 256
)

// Check reports what is wrong with a glob, to be read after its name.
func Check(glob string) error {
	switch {
	case len(glob) > MaxBytes:
		return fmt.Errorf("has %d bytes, at most %d", len(glob), MaxBytes)
	case !doublestar.ValidatePattern(glob):
		return errors.New("can't be read: a bracket or brace isn't closed, or a backslash ends it")
	case Alternatives(glob) > MaxAlternatives:
		return fmt.Errorf("has more than %d alternatives", MaxAlternatives)
	}
	return nil
}

// Alternatives is an upper bound of the globs that the braces of a valid one make;
// beyond [MaxAlternatives] it counts no further.
func Alternatives(glob string) int {
	all, open := 1, []int{}
	for i := 0; i < len(glob) && all <= MaxAlternatives; i++ {
		switch glob[i] {
		case '\\':
			i++
		case '[': // in a class, braces and commas are characters
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
		case '{':
			open = append(open, 1)
		case ',':
			if len(open) > 0 {
				open[len(open)-1]++
			}
		case '}':
			if n := len(open); n > 0 {
				all *= open[n-1]
				open = open[:n-1]
			}
		}
	}
	return all
}
