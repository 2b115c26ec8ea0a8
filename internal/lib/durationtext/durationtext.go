// Package durationtext writes a duration as a person does: "30m", "1h30m".
package durationtext

import (
	"strings"
	"time"
)

// Of returns the exact duration without parts that are zero; [time.ParseDuration] reads it.
func Of(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
