package share

import (
	"context"
	"testing"
)

func TestPool(t *testing.T) {
	for _, c := range []struct {
		name             string
		places, rooms    int
		own, alone, rest int // guaranteed; what one room gets; what another one gets then
	}{
		{"one room", 8, 1, 4, 8, 0},
		{"two rooms", 8, 2, 2, 6, 2},
		{"an odd number", 9, 4, 1, 6, 1},
		{"as many rooms as places", 4, 4, 1, 1, 1},
		{"more rooms than places", 4, 5, 0, 4, 0},
		{"no room yet", 4, 0, 2, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewPool(c.places, c.rooms)
			first, second := p.Room(), p.Room()
			if p.own != c.own {
				t.Errorf("%d are guaranteed, want %d", p.own, c.own)
			}
			take := func(r *Room) (n int, last Place) {
				for {
					p, ok := r.Try()
					if !ok {
						return n, last
					}
					last, n = p, n+1
				}
			}
			n, last := take(first)
			if n != c.alone {
				t.Errorf("one room takes %d, want %d", n, c.alone)
			}
			if n, _ := take(second); n != c.rest && c.rooms > 1 {
				t.Errorf("the other room takes %d then, want %d", n, c.rest)
			}
			last.Free()
			if n, _ := take(first); n != 1 {
				t.Errorf("%d places after one was freed, want 1", n)
			}
		})
	}
}

func TestNth(t *testing.T) {
	r := NewPool(6, 1).Room()
	var got [][2]int
	for {
		p, ok := r.Try()
		if !ok {
			break
		}
		got = append(got, [2]int{p.Nth, p.Of})
	}
	want := [][2]int{{1, 3}, {2, 3}, {3, 3}, {1, 3}, {2, 3}, {3, 3}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("place %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestTake(t *testing.T) {
	r := NewPool(1, 1).Room()
	ctx, cancel := context.WithCancel(t.Context())
	first, ok := r.Take(ctx)
	if !ok {
		t.Fatal("no place")
	}
	done := make(chan bool)
	go func() { _, ok := r.Take(ctx); done <- ok }()
	first.Free()
	if !<-done {
		t.Error("one that waits doesn't get the place that is freed")
	}
	cancel()
	if _, ok := r.Take(ctx); ok {
		t.Error("a place that isn't there")
	}
	if p, ok := (*Room)(nil).Try(); !ok {
		t.Error("a nil Room has a bound")
	} else {
		p.Free()
	}
}
