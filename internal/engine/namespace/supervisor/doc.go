// Package supervisor is `workshop-init supervise`: PID 1 of the pid namespace in
// which everything of one project runs. It starts containers from complete
// specs (internal/engine/namespace/container/spec), keeps them and what they print, restarts those
// whose policy says so, and hands out descriptors. It decides nothing: what
// runs, and in which order, its clients say (package api).
//
// When it ends, however it ends, the kernel kills everything that it started:
// the end of PID 1 is the end of its namespace (pid_namespaces(7)).
//
// What belongs to one service is changed by one goroutine at a time, which has
// its turn; what clients see of it is under the lock of the Supervisor.
package supervisor
