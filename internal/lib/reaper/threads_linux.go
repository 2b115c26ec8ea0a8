package reaper

import (
	"runtime"
	"sync"
)

// SpareThreads makes the runtime start n threads, which it keeps idle. At a limit of
// processes it couldn't start one, and would crash when it needs it.
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
