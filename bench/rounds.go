//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

// contender is one of the compared measurements.
type contender struct {
	do    func() error
	batch int // how often in a row, each measured by itself; 0: once
}

// times are the sorted measurements of one contender, in milliseconds.
type times []float64

func (t times) p(percent int) float64 { return t[min(len(t)*percent/100, len(t)-1)] }

func (t times) median() float64 { return t.p(50) }

// quarters says what the faster measurements are, which others' work disturbs least.
func quarters(ours, other times) string {
	return fmt.Sprintf("a quarter takes up to %.1f ms, of the other %.1f ms: %.3f", ours.p(25), other.p(25), ours.p(25)/other.p(25))
}

// compete runs each contender in turn, rounds times, after one warm-up. What
// takes microseconds runs several times in a row: else each would find the
// caches as one that takes a hundred times as long has left them.
func (b *bench) compete(rounds int, all ...contender) ([]times, error) {
	out := make([]times, len(all))
	for round := -1; round < rounds; round++ {
		for i, c := range all {
			for range max(c.batch, 1) {
				if err := b.ctx.Err(); err != nil {
					return nil, err
				}
				start := time.Now()
				if err := c.do(); err != nil {
					return nil, err
				}
				if round >= 0 {
					out[i] = append(out[i], float64(time.Since(start).Nanoseconds())/1e6)
				}
			}
		}
	}
	for _, t := range out {
		slices.Sort(t)
	}
	return out, nil
}
