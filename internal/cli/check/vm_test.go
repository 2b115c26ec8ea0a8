package check

import (
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/vm/report"
)

func TestOldKernel(t *testing.T) {
	built := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	const want = "its kernel was built 91 days ago: unpack a newer package, then `workshop vm setup --kernel DIR`"
	for _, c := range []struct {
		name  string
		built time.Time
		days  int
		want  string
	}{
		{"new", built, 90, ""}, {"old", built, 91, want}, {"of tomorrow", built, -1, ""}, {"unknown", time.Time{}, 900, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := oldKernel(report.Kernel{Date: c.built}, built.AddDate(0, 0, c.days)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
