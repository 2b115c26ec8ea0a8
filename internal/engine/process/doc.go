// Package process carries plans out in process mode: there are no containers,
// and tools run on this machine as the caller, under checks of paths and lists.
// It waives the promises B1 to B31 (internal/promise), and whoever uses it says
// so at every start.
//
// What remains of a worker is a description (toolbox/process.Spec): its tools,
// its mounts as places of this machine, its environment, its network's lines. A
// session is a process of workshop-init with that description. Its file tools
// open nothing but what lies below a mount's source, and write only where the
// mount says rw. Programs that it starts are fenced by Landlock where the kernel
// has it: they read the machine's programs and the sources, and write the rw ones
// and directories of their own (HOME, /tmp, /scratch). fetch_url asks the policy
// and the never-list. Nothing of a session outlives it.
//
// What isn't held, beside all that a container gives: programs have the
// machine's network, unix sockets that have a path (an engine's among them), the
// user's terminals (/dev/pts), and know no paths of the worker but by their
// working directory and variables. Of modes, owners and times of files Landlock
// knows nothing, and before Linux 6.12 nothing of signals. A read-only directory
// within a writable mount, such as .git, is closed to the file tools alone.
//
// `up` starts nothing: it writes the descriptions to the state directory,
// $XDG_STATE_HOME/workshop/process/PROJECT.
package process
