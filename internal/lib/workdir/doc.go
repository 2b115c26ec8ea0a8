// Package workdir enters the working directory of a worker, from inside and as
// the worker's user. A path below a writable mount is hostile: a component of it
// can become a link at any time. Ordinary links are followed, which lead to what
// the worker has anyway. Magic links of procfs (/proc/PID/fd/N, cwd, root) lead
// to whatever a process has open, of the machine in the worst case
// (CVE-2024-21626), and are not followed, whatever the container runtime does.
package workdir
