package container

import (
	"os"
	"runtime"
	"testing"
)

// Docker hides them since 28. This machine may have none: another directory of
// each processor stands for them.
func TestThrottles(t *testing.T) {
	for _, name := range throttles() {
		if _, err := os.Stat("/sys/" + name); err != nil {
			t.Error(err)
		}
	}
	defer func(old string) { throttled = old }(throttled)
	throttled = "/sys/devices/system/cpu/cpu[0-9]*/topology"
	got := throttles()
	if len(got) < runtime.NumCPU() {
		t.Errorf("%v, of %d processors", got, runtime.NumCPU())
	}
	for _, name := range got {
		if info, err := os.Stat("/sys/" + name); err != nil || !info.IsDir() || name[0] == '/' {
			t.Errorf("%s: %v", name, err)
		}
	}
}
