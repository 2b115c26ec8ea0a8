package engine

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestSlotsByOrderWithOneReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{free: 2, reserved: 9}
		first, _ := s.get(t.Context(), 1)
		order := make(chan int, 10)
		for _, id := range []int{4, 2, 3, 9} {
			go func() {
				release, _ := s.get(t.Context(), id)
				order <- id
				release()
			}()
			synctest.Wait()
			if id != 9 && len(order) > 0 {
				t.Fatalf("the reserved slot went to %d", <-order)
			}
		}
		first()
		synctest.Wait()
		if got := <-order; got != 9 {
			t.Errorf("first was %d, want the reserved 9", got)
		}
		for _, want := range []int{2, 3, 4} {
			if got := <-order; got != want {
				t.Errorf("got %d, want %d", got, want)
			}
		}
	})
}

func TestSlotsEndWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slots{free: 1}
		release, _ := s.get(t.Context(), 1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool)
		go func() { _, ok := s.get(ctx, 2); done <- ok }()
		synctest.Wait()
		cancel()
		if <-done {
			t.Error("got a slot that was not free")
		}
		release()
		if _, ok := s.get(t.Context(), 3); !ok {
			t.Error("the slot was lost")
		}
	})
}
