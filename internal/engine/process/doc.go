// Package process is the engine of process mode: without containers, tools run on
// this machine as the caller, with checks of paths and allow lists. It waives the
// promises B1 to B36 (internal/promise), and every start says so.
//
// A worker is only a description (toolbox/process.Spec): its tools, its mounts as
// paths of this machine, its environment, its network lines. A session is a
// workshop-init process with that description. Its file tools open only files below
// a mount's source, and write only to rw mounts. Its programs are restricted by
// Landlock if the kernel has it: they read the machine's programs and the sources,
// and write to rw sources and their own directories (HOME, /tmp, /scratch).
// fetch_url checks the policy and the never-list. Nothing of a session outlives it.
//
// Besides everything that a container provides, this is missing: programs have the
// machine's network, unix sockets with a path (also an engine's), and the user's
// terminals (/dev/pts); they find the worker's paths only by working directory and
// variables. Landlock doesn't restrict changes of modes, owners and times, and before
// Linux 6.12 no signals. A read-only directory within a writable mount, such as
// .git, is read-only for the file tools alone.
//
// `up` starts nothing: it writes the descriptions to the state directory,
// $XDG_STATE_HOME/workshop/process/PROJECT.
package process
