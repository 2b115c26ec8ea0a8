package initimage

// BuildTags are the build tags of workshop-init: it speaks HTTP/1.1 only.
const BuildTags = "nethttpomithttp2"

// Godebug is what workshop-init has for GODEBUG by itself (runtime.godebugDefault). Without
// asynchronous preemption the runtime sends its threads no signal. The first one to each, and
// the registers that it saves (runtime/preempt_xreg.go), take memory: where a worker's memory
// is used up, that kills PID 1 (B5). In the environment of PID 1 it would be the worker's too,
// and a //go:debug line doesn't take it.
const Godebug = "asyncpreemptoff=1"

// LinkFlags are the flags for the linker.
const LinkFlags = "-s -w -X runtime.godebugDefault=" + Godebug

// BuildFlags are the flags with which workshop-init is built, everywhere the same.
func BuildFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-tags", BuildTags, "-ldflags", LinkFlags}
}
