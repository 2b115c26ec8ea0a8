package worker

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// An answer costs what its size says, whatever a worker makes of it.
func TestCheckResultCost(t *testing.T) {
	before := runtime.MemStats{}
	runtime.ReadMemStats(&before)
	begun := time.Now()
	// Long keys in each other: their pointers together would take gigabytes.
	const depth = 5000
	deep := strings.Repeat(`{"`+strings.Repeat("k", 1000)+`":`, depth) + "1" + strings.Repeat("}", depth)
	if list := CheckResult([]byte(`{"type":"array"}`), "x", []byte(deep)); len(list) != 1 {
		t.Error(list)
	}
	// Many items, of which the last one is wrong.
	many := "[" + strings.Repeat("1,", 100_000) + `"x"]`
	list := CheckResult([]byte(`{"type":"array","items":{"type":"integer"}}`), "x", []byte(many))
	if len(list) != 1 || list[0].Range.Start.Byte != len(many)-4 || !strings.HasPrefix(list[0].Summary, "/100000: ") {
		t.Error(list)
	}
	after := runtime.MemStats{}
	runtime.ReadMemStats(&after)
	if used, took := (after.TotalAlloc-before.TotalAlloc)>>20, time.Since(begun); used > 1000 || took > 20*time.Second {
		t.Errorf("%d MiB, %v", used, took)
	}
}
