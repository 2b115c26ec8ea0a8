// Package guest is PID 1 of a worker's virtual machine: it loads the kernel's modules, opens
// the carrier (package carrier), says that it is ready, and is the relay of what the worker
// dials. It starts the worker as a container, by the code of the namespace engine, and
// brings the host's sessions to it. The machine has no network card; the carrier is all that
// leads out of it. When it or the worker ends, the machine is powered off.
//
// Nobody believes it: a worker may own this kernel. What holds the worker is outside.
package guest
