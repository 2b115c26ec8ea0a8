package reaper

import (
	"runtime"
	"sync"
)

// SpareThreads makes the runtime have n idle threads, which it keeps. Where a
// limit of processes is reached it can't make one, and ends the program when it
// needs it.
func SpareThreads(n int) {
	var together, ended sync.WaitGroup
	together.Add(n)
	ended.Add(n)
	for range n {
		go func() {
			defer ended.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			together.Done()
			together.Wait() // each holds a thread until all have one
		}()
	}
	ended.Wait()
}
