// Package workdir enters the working directory of a worker, from inside and as the
// worker's user. A path below a writable mount is untrusted: a component can become a
// link at any time. Ordinary links, which lead to files that the worker can reach anyway,
// are followed. Magic links of procfs (/proc/PID/fd/N, cwd, root) lead to a process's
// open files, in the worst case of the machine (CVE-2024-21626), and are never followed,
// whatever the container runtime does.
package workdir
