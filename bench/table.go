//go:build linux

package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

func (b *bench) add(r row) { b.rows = append(b.rows, r) }

// print shows the table: the ratio is ours / other.
func (b *bench) print() {
	if len(b.rows) == 0 {
		return // the soak has a table of its own
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "what\tours\tagainst\tthat\tratio\tmay be\t\t\n")
	for _, r := range b.rows {
		ratio, limit, verdict := "", "", ""
		if r.other > 0 {
			ratio = fmt.Sprintf("%.3f", r.ours/r.other)
		}
		if r.limit > 0 && r.other > 0 {
			limit = fmt.Sprintf("%.2f", r.limit)
			if r.limit < 0.05 {
				limit = fmt.Sprintf("%.4f", r.limit)
			}
			verdict = "ok"
			if r.ours/r.other > r.limit {
				verdict = "MISSED"
			}
		}
		other := ""
		if r.other > 0 {
			other = number(r.other, r.unit)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.what, number(r.ours, r.unit), r.against, other, ratio, limit, verdict)
	}
	_ = w.Flush()
	for _, r := range b.rows {
		if r.note != "" {
			fmt.Printf("note, %s: %s\n", r.what, r.note)
		}
	}
}

func number(v float64, unit string) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f %s", v, unit)
	case v >= 10:
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}
