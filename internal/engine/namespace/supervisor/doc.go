// Package supervisor is `workshop-init supervise`: PID 1 of the pid namespace of one
// project. It starts containers from complete specs
// (internal/engine/namespace/container/spec), keeps their logs, restarts them by
// their policy, and passes descriptors to clients. It decides nothing: what runs, and
// in which order, is up to its clients (package api).
//
// When it ends for any reason, the kernel kills everything that it started: the end
// of PID 1 ends its namespace (pid_namespaces(7)).
//
// A service is changed by one goroutine at a time, which holds its turn; what clients
// see of it is protected by the lock of the Supervisor.
package supervisor
