package cli

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func percent() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

func TestCollectLater(t *testing.T) {
	before := percent()
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "70")
	collectLater()
	if p := percent(); p != before {
		t.Errorf("with GOGC it is %d, was %d", p, before)
	}
	t.Setenv("GOGC", "")
	collectLater()
	for end := time.Now().Add(10 * time.Second); percent() != before; {
		if time.Now().After(end) {
			t.Fatalf("it stays %d, was %d", percent(), before)
		}
		runtime.GC()
	}
}
