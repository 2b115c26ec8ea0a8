package pid1

import (
	"os"
	"slices"
	"strings"
)

// Arguments returns the arguments of `workshop-init gate` if that is PID 1 here, and
// false otherwise.
func Arguments() (args []string, ok bool, err error) {
	b, err := os.ReadFile("/proc/1/cmdline")
	if err != nil {
		return nil, false, err
	}
	args, ok = workerArgs(strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"))
	return args, ok, nil
}

func workerArgs(argv []string) ([]string, bool) {
	at := slices.Index(argv, "gate")
	if at < 0 {
		return nil, false
	}
	return argv[at+1:], true
}

// Value returns the value of a flag in the arguments of `workshop-init gate`.
func Value(args []string, flag string) (string, bool) {
	at := slices.Index(args, flag)
	if at < 0 || at+1 >= len(args) {
		return "", false
	}
	return args[at+1], true
}
