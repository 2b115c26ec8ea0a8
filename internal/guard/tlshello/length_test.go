package tlshello

import (
	"bytes"
	"errors"
	"testing"
)

// TestReadRefusesWhatIsTooLong: by the length that the message says, at once,
// and by what is read, however small its records are (B60).
func TestReadRefusesWhatIsTooLong(t *testing.T) {
	for name, in := range map[string][]byte{
		"says so":         {22, 3, 1, 0, 4, 1, 0x10, 0, 0},
		"in many records": records(append([]byte{1, 0, 0xff, 0}, make([]byte, 0xff00)...), 1),
	} {
		if _, read, err := Read(bytes.NewReader(in), nil); !errors.Is(err, errLarge) || len(read) > MaxBytes {
			t.Errorf("%s: %d bytes, %v", name, len(read), err)
		}
	}
}
