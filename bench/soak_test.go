//go:build linux

package main

import (
	"strings"
	"testing"
)

// The soak fails for what grows, for too much memory, and for what stays.
func TestJudge(t *testing.T) {
	steady := sample{memory: 60, rss: 40, descriptors: 5000, sockets: 2000, goroutines: 1800, connections: 1000}
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
		"one moment":        {change: func(i int, x *sample) { x.memory += 400 * float64(max(0, i-38)) }, want: "memory, MiB: 460"},
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

func TestLost(t *testing.T) {
	for _, c := range []struct {
		name          string
		failures, all int
		ok            bool
	}{
		{"none", 0, 1, true},
		{"fewer", 1, 10_001, true},
		{"just as many", 1, 10_000, false},
		{"more", 3, 20_000, false},
		{"no request", 0, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := lost(c.failures, c.all); (err == nil) != c.ok {
				t.Errorf("%v, want ok %v", err, c.ok)
			}
		})
	}
}
