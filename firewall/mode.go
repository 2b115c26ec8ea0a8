package firewall

import (
	"fmt"

	"github.com/llmdo/workshop/internal/lib/clip"
)

var modeNames = [...]string{None: "none", Restricted: "restricted", Open: "open"}

// ParseMode reads "none", "restricted" or "open".
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), nil
		}
	}
	return None, fmt.Errorf("%q is not a network mode; write none, restricted or open", clip.Bytes(s, shown))
}

// String returns the mode's name in workshop.yaml.
func (m Mode) String() string {
	if m < 0 || int(m) >= len(modeNames) {
		return "invalid"
	}
	return modeNames[m]
}

// MarshalText writes the mode as String does.
func (m Mode) MarshalText() ([]byte, error) {
	if m < 0 || int(m) >= len(modeNames) {
		return nil, fmt.Errorf("network mode %d does not exist", int(m))
	}
	return []byte(m.String()), nil
}

// UnmarshalText reads a mode as [ParseMode] does.
func (m *Mode) UnmarshalText(b []byte) error {
	var err error
	*m, err = ParseMode(string(b))
	return err
}
