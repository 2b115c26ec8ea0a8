package doctor

import (
	"errors"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/vm/report"
)

func TestKit(t *testing.T) {
	built := time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)
	later := func(days int) time.Time { return built.AddDate(0, 0, days) }
	of := func(date, installed time.Time, err error) Kit {
		return Kit{Kit: report.Kit{Kernel: report.Kernel{Release: "6.1.0-50-cloud-amd64", Date: date}}, Installed: installed, Err: err}
	}
	const boots = "virtual machines boot kernel 6.1.0-50-cloud-amd64"
	const old = "unpack a newer package, then `workshop vm setup --kernel DIR`"
	for _, c := range []struct {
		name string
		kit  Kit
		now  time.Time
		want Finding
	}{
		{"new", of(built, time.Time{}, nil), later(90), Finding{Level: OK, Text: boots}},
		{"of tomorrow", of(built, time.Time{}, nil), later(-1), Finding{Level: OK, Text: boots}},
		{"of no day", of(time.Time{}, built, nil), later(900), Finding{Level: OK, Text: boots}},
		{"old", of(built, time.Time{}, nil), later(91), Finding{Level: Warning, Text: boots + ": its kernel was built 91 days ago", Do: old}},
		{"as installed", of(built, built.Add(5*time.Hour), nil), later(9), Finding{Level: OK, Text: boots}},
		{"older than installed", of(built, later(20), nil), later(30),
			Finding{Level: Warning, Text: boots + ", which was built on 2026-08-01; this machine has one of 2026-08-21", Do: setUp}},
		{"gone", of(built, built, errors.New("no kit.json")), built, Finding{Level: Error, Text: "the kit of your settings (vm_kit): no kit.json", Do: setUp}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Group, c.want.Name = Kernel, "vm-kit"
			if got := c.kit.Finding(c.now); got != c.want {
				t.Errorf("got %+v\nwant %+v", got, c.want)
			}
		})
	}
}
