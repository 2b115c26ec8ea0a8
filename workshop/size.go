package workshop

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/docker/go-units"
)

// maxSize is the largest size that is taken: 1 PiB. Larger ones overflow.
const maxSize = Size(1) << 50

// ParseSize reads a size as Compose does (go-units: 512M, 2G, 1.5g, 64mb,
// plain bytes; units are powers of 1024). Negative sizes, exponents and what
// doesn't fit are errors.
func ParseSize(s string) (Size, error) {
	if strings.HasPrefix(strings.TrimSpace(s), "-") {
		return 0, fmt.Errorf("the size %s is negative", clip(strconv.Quote(s)))
	}
	number := strings.TrimRight(s, "bBkKmMgGtTpPiI")
	if !digits(strings.TrimSuffix(number, " ")) {
		return 0, fmt.Errorf("%s is not a size; write 512M or 2G", clip(strconv.Quote(s)))
	}
	n, err := units.RAMInBytes(s)
	// A float64 beyond int64 turns into an arbitrary number, so the digits
	// are bounded too.
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s is not a size; write 512M or 2G", clip(strconv.Quote(s)))
	}
	whole, _, _ := strings.Cut(number, ".")
	if Size(n) > maxSize || len(strings.TrimLeft(whole, "0")) > 16 {
		return 0, fmt.Errorf("the size %s is larger than 1 PiB", clip(strconv.Quote(s)))
	}
	return Size(n), nil
}

// digits reports whether s is a number in plain decimal notation.
func digits(s string) bool {
	if s == "" || s == "." {
		return false
	}
	dots := 0
	for i := range len(s) {
		switch {
		case s[i] == '.':
			dots++
		case s[i] < '0' || s[i] > '9':
			return false
		}
	}
	return dots <= 1
}

// String returns the size with the largest binary unit that loses nothing:
// "2G", "512M", "100".
func (s Size) String() string {
	for _, u := range []struct {
		size Size
		name string
	}{{1 << 40, "T"}, {1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}} {
		if s != 0 && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
