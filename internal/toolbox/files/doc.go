// Package files has the tools that read, write and look for files.
//
// A path that isn't absolute is relative to the working directory of the
// process. The mounts are the boundary (design: B3, B7): no path is checked, and
// symbolic links lead where the kernel leads them. Two things are refused
// nevertheless:
//
//   - all of a procfs: a session could read or write itself there,
//     and with it the connection that it answers on;
//   - all but regular files: a FIFO, a socket or a device may never
//     answer.
//
// Names and texts that are not UTF-8 come with the replacement character, as JSON
// can't carry them. Each function ends early with the context's error.
package files
