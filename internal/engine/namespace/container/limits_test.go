package container

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func init() {
	insides["realtime"] = func([]string) {
		for _, n := range []int{unix.RLIMIT_RTPRIO, unix.RLIMIT_NICE, unix.RLIMIT_CORE} {
			var l unix.Rlimit
			fmt.Println(unix.Getrlimit(n, &l), l.Cur, l.Max)
		}
	}
}

// B5: who starts a workshop may be allowed real-time priorities; its containers
// never are.
func TestOwnLimits(t *testing.T) {
	nofile := spec.Rlimit{Name: "nofile", Soft: 1, Hard: 2}
	for _, given := range [][]spec.Rlimit{nil, {nofile}, {{Name: "core"}, nofile}} {
		got := withOwn(given)
		for _, name := range []string{"core", "rtprio", "nice"} {
			if !slices.Contains(got, spec.Rlimit{Name: name}) {
				t.Errorf("%v: %s is inherited: %v", given, name, got)
			}
		}
		if len(given) > 0 && !slices.Contains(got, nofile) {
			t.Errorf("%v: %v", given, got)
		}
	}
	// Only root with CAP_SYS_RESOURCE can raise its own; where it can't, the
	// limits of this process are 0 as a rule.
	for _, n := range []int{unix.RLIMIT_RTPRIO, unix.RLIMIT_NICE} {
		var old unix.Rlimit
		if err := unix.Getrlimit(n, &old); err != nil {
			t.Fatal(err)
		}
		if unix.Setrlimit(n, &unix.Rlimit{Cur: 30, Max: max(old.Max, 30)}) == nil {
			defer unix.Setrlimit(n, &old) //nolint:errcheck
		}
	}
	eachMode(t, func(t *testing.T, mode string) {
		const want = "<nil> 0 0\n<nil> 0 0\n<nil> 0 0\n"
		if got := run(t, mode, job{Spec: container(mode, "realtime")}); got.Err != "" || got.Out != want {
			t.Errorf("%+v; want %q", got, want)
		}
	})
}
