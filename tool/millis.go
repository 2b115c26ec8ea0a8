package tool

import (
	"encoding/json"
	"fmt"
	"time"
)

// DialInDir is where a worker's PID 1 finds the directory of package dialin, which
// the compile mounts there read-only.
const DialInDir = "/run/workshop"

// Millis is a time in milliseconds. As JSON it is a duration's text, "10m0s":
// so a generated file can keep the variable that a workshop.yaml has in its
// place (B45).
type Millis int64

// MarshalJSON implements [json.Marshaler].
func (m Millis) MarshalJSON() ([]byte, error) {
	return json.Marshal((time.Duration(m) * time.Millisecond).String())
}

// UnmarshalJSON implements [json.Unmarshaler]. A time that is not positive, or
// shorter than a millisecond, is an error: it would be none at all.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	if d < time.Millisecond {
		return fmt.Errorf("%q is not a duration of 1ms or more", text)
	}
	*m = Millis(d.Milliseconds())
	return nil
}
