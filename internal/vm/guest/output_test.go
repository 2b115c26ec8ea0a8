//go:build linux

package guest

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmdo/workshop/internal/carrier"
	"github.com/llmdo/workshop/internal/made"
)

// What the worker's PID 1 writes is told line by line, but for what it says of its container.
func TestTell(t *testing.T) {
	long := strings.Repeat("x", carrier.MaxLine)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"lines", "READY\n\nlast", []string{"READY", "", "last"}},
		{"long", long + "yz\nb\n", []string{long, "yz", "b"}},
		{"made", made.Prefix + "{}\nREADY\n" + made.Prefix + "{}", []string{"READY"}},
		{"long made", made.Prefix + long + long + "\n" + "READY\n", []string{"READY"}},
		{"not made", "a " + made.Prefix + "\n", []string{"a " + made.Prefix}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			tell(io.NopCloser(strings.NewReader(c.text)), func(line string) { got = append(got, line) })
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A line is one that the host takes, whatever was written.
func TestSay(t *testing.T) {
	var got []carrier.Head
	w := newWorker()
	w.send = func(h carrier.Head) error {
		_, err := carrier.DecodeOf(h.Encode(), carrier.Output)
		got = append(got, h)
		return err
	}
	for _, line := range []string{"", "a\xffb", strings.Repeat("é", carrier.MaxLine)} {
		w.say(carrier.Stderr, line)
	}
	if len(got) != 3 || got[1].Line != "a?b" || len(got[2].Line) != carrier.MaxLine {
		t.Errorf("got %.40v", got)
	}
	for _, h := range got {
		if _, err := carrier.DecodeOf(h.Encode(), carrier.Output); err != nil {
			t.Errorf("%.40q: %v", h.Line, err)
		}
	}
}

// B5: the worker's limit leaves memory to the machine's PID 1, and is never more than asked.
func TestLimit(t *testing.T) {
	meminfo := func(kB string) string {
		return "MemTotal:  999999 kB\nMemFree:  1 kB\nMemAvailable:   " + kB + " kB\nBuffers: 0 kB\n"
	}
	for _, c := range []struct {
		name, meminfo string
		asked, want   int64 // want 0: an error
	}{
		{"all", meminfo("102400"), 0, 100<<20 - reserved},
		{"more than there is", meminfo("102400"), 1 << 30, 100<<20 - reserved},
		{"less", meminfo("102400"), 50 << 20, 50 << 20},
		{"too little", meminfo("20480"), 0, 0},
		{"less than nothing", meminfo("1024"), 0, 0},
		{"another kernel", "MemTotal: 1 kB\n", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := limit(c.meminfo, c.asked)
			if got != c.want || (err != nil) != (c.want == 0) {
				t.Errorf("got %d, %v, want %d", got, err, c.want)
			}
		})
	}
}
