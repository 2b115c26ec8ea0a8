// Package visible says what of a text a person can't see.
package visible

import "unicode"

// Hidden reports whether a rune isn't seen as what it is: control characters, what
// reorders a line (Unicode UAX #9), blanks other than the space, variation selectors,
// fillers and other runes that show nothing, and runes that Unicode doesn't assign.
func Hidden(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f:
		return false
	case r == 0x2800, r == 0x16fe4: // a Braille cell without dots, a filler of Khitan
		return true
	}
	return unicode.In(r, unicode.C, unicode.Z, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || !unicode.IsPrint(r)
}
