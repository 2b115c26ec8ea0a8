// Package seccomp takes system calls away from a process that has started (seccomp(2)).
package seccomp
