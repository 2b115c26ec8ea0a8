package docker

import (
	"io"
	"strings"
	"testing"
)

// TestReadiness: a report may be longer than other lines, which are cut.
func TestReadiness(t *testing.T) {
	report, words := strings.Repeat("m", 100_000), strings.Repeat("w", 100_000)
	for _, tt := range []struct {
		name, text, made string
		notes            int
		ready            bool
	}{
		{"a report", "MADE " + report + "\nREADY\n", report, 0, true},
		{"after another line", words + "\nMADE {}\nREADY\n", "{}", 0, true},
		{"the beginning of another line", "xMADE {}\nREADY\n", "", 0, true},
		{"after READY", "READY\nMADE {}\n", "", 0, true},
		{"two reports", "MADE \nMADE {}\nMADE {1}\nREADY\n", "{}", 0, true},
		{"a note", "NOTE " + words + "\nMADE {}\nREADY\n", "{}", 1, true},
		{"cut by the end", "MADE {}", "", 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, step := range []int{1, 1000, 1 << 20} {
				rd := newReadiness(io.NopCloser(nil))
				w := &lineWriter{line: rd.hear}
				for rest := tt.text; rest != "" && !rd.ready; rest = rest[min(step, len(rest)):] {
					_, _ = w.Write([]byte(rest[:min(step, len(rest))]))
				}
				if rd.made != tt.made || rd.ready != tt.ready || len(rd.notes) != tt.notes {
					t.Errorf("by %d: a report of %d bytes, ready %v, %d notes", step, len(rd.made), rd.ready, len(rd.notes))
				}
				for _, note := range rd.notes {
					if len(note) > maxLine {
						t.Errorf("a note of %d bytes", len(note))
					}
				}
			}
		})
	}
}
