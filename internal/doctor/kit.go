package doctor

import (
	"fmt"
	"time"

	"github.com/llmdo/workshop/internal/vm/report"
)

// Kit is the one of the user's settings, of which virtual machines are made.
type Kit struct {
	report.Kit
	// Err is why it can't be read; nil: it was.
	Err error
	// Installed is when the kernel of its release was written that this machine has now, by
	// its package: when it was built. Zero: it has none.
	Installed time.Time
}

// NewerKernel is how a kit gets a newer kernel.
const NewerKernel = "unpack a newer package, then `workshop vm setup --kernel DIR`"

// setUp is how a kit is made again.
const setUp = "make it again: `workshop vm setup`"

// Finding judges it.
func (k Kit) Finding(now time.Time) Finding {
	f := Finding{Group: Kernel, Name: "vm-kit", Level: OK, Text: "virtual machines boot kernel " + k.Kernel.Release}
	switch old := OldKernel(k.Kernel, now); {
	case k.Err != nil:
		f.Level, f.Text, f.Do = Error, "the kit of your settings (vm_kit): "+k.Err.Error(), setUp
	case !k.Kernel.Date.IsZero() && k.Installed.Sub(k.Kernel.Date) > day:
		f.Level, f.Do = Warning, setUp
		f.Text += fmt.Sprintf(", which was built on %s; this machine has one of %s", k.Kernel.Date.Format(time.DateOnly), k.Installed.UTC().Format(time.DateOnly))
	case old != "":
		f.Level, f.Do = Warning, NewerKernel
		f.Text += ": " + old
	}
	return f
}

const (
	day = 24 * time.Hour
	// kernelAge is how old a kernel may be until it is said to be: it misses fixes.
	kernelAge = 90 * day
)

// OldKernel says how old a kernel is that is too old; "": it isn't, or doesn't say.
func OldKernel(k report.Kernel, now time.Time) string {
	age := now.Sub(k.Date)
	if k.Date.IsZero() || age <= kernelAge {
		return ""
	}
	return fmt.Sprintf("its kernel was built %d days ago", age/day)
}
