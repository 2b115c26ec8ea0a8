// Package guest is PID 1 of a worker's virtual machine: it loads the kernel's modules, opens
// the carrier (package carrier), is the relay of what the worker dials, and says that it is
// ready. The machine has no network card; the carrier is all that leads out of it. When it
// ends, the machine is powered off.
//
// Nobody believes it: a worker may own this kernel. What holds the worker is outside.
package guest
