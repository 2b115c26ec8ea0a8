package clock

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmdo/workshop/internal/dev/testutil"
)

func TestMain(m *testing.M) {
	if os.Getenv("CLOCK_TEST") != "" {
		fmt.Println(int64(Boot()))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestBoot is in a time namespace (time_namespaces(7)) in which the machine slept
// for a day: the clock counts that.
func TestBoot(t *testing.T) {
	const slept = 24 * time.Hour
	testutil.Require(t, os.Geteuid() == 0, "needs root (a time namespace)")
	before := Boot()
	cmd := exec.Command("unshare", "--time", "--fork", "--boottime", strconv.Itoa(int(slept.Seconds())), os.Args[0])
	cmd.Env = append(os.Environ(), "CLOCK_TEST=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		testutil.Require(t, false, "time namespaces: "+string(out))
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if d := time.Duration(n) - before - slept; err != nil || d < 0 || d > time.Minute {
		t.Errorf("got %s %v, want %s more than before", time.Duration(n)-before, err, slept)
	}
}
