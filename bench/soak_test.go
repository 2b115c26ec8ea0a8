//go:build linux

package main

import (
	"strings"
	"testing"
)

// The soak fails for what grows, for too much memory, and for what stays.
func TestJudge(t *testing.T) {
	steady := sample{rss: 40, descriptors: 5000, sockets: 2000, goroutines: 1800, connections: 1000}
	idle := sample{rss: 20, descriptors: 18, sockets: 9, goroutines: 17}
	for what, c := range map[string]struct {
		change func(i int, x *sample)
		after  func(*sample)
		want   string // "" passes
	}{
		"steady":            {want: ""},
		"a warm-up":         {change: func(i int, x *sample) { x.goroutines -= 10 * float64(max(0, 10-i)) }},
		"less than a tenth": {change: func(i int, x *sample) { x.descriptors += 10 * float64(i) }},
		"descriptors leak":  {change: func(i int, x *sample) { x.descriptors += 40 * float64(i) }, want: "descriptors grew"},
		"goroutines leak":   {change: func(i int, x *sample) { x.goroutines += 20 * float64(i) }, want: "goroutines grew"},
		"one moment":        {change: func(i int, x *sample) { x.rss += 70 * float64(max(0, i-38)) }, want: "RSS, MiB: 110"},
		"sockets stay":      {after: func(x *sample) { x.sockets += 50 }, want: "50 sockets and 0 goroutines are left"},
	} {
		var all []sample
		for i := range 40 {
			x := steady
			if c.change != nil {
				c.change(i, &x)
			}
			all = append(all, x)
		}
		after := idle
		if c.after != nil {
			c.after(&after)
		}
		err := judge(idle, all, after)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
