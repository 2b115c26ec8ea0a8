package terminal

import "time"

// watchResize signals each change of the terminal's size; Windows has no
// signal for it, so it is asked for.
func watchResize(size func() (rows, cols uint, ok bool)) (<-chan struct{}, func()) {
	resized := make(chan struct{}, 1)
	stop := make(chan struct{})
	go func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		rows, cols, _ := size()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			r, c, ok := size()
			if !ok || r == rows && c == cols {
				continue
			}
			rows, cols = r, c
			select {
			case resized <- struct{}{}:
			default:
			}
		}
	}()
	return resized, func() { close(stop) }
}
